"""What a rate needs, from measured unit costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from fraud_filter.cli.main import cli
from fraud_filter.errors import UsageError
from lab.bench.capacity import Machines, estimate, load_report


def _result(mode: str, rate: float, **changes: Any) -> dict[str, Any]:
    return {
        "mode": mode, "rate": rate, "keeps_up": True, "cpu_s_per_1000": 0.2, "broker_cpu_s_per_1000": 0.1,
    } | changes  # fmt: skip


def test_cores_partitions_and_machines_follow_from_the_costs_of_a_payment() -> None:
    (need,) = estimate([_result("real-time", 5000)], 1_000_000, Machines(worker_cores=16, broker_cores=8))
    # 200 busy cores at half use are 400; 100 of the brokers, three copies, half use: 600.
    assert (need.cores, need.partitions, need.workers, need.brokers) == (400, 400, 25, 75)


def test_the_costs_are_those_of_the_highest_rate_that_held() -> None:
    results = [
        _result("continuous", 100, cpu_s_per_1000=5.0),
        _result("continuous", 5000, cpu_s_per_1000=0.3),
        _result("continuous", 40_000, cpu_s_per_1000=0.01, keeps_up=False),
        _result("floor", 40_000),
    ]
    (need,) = estimate(results, 1000, Machines(utilisation=1))
    assert (need.mode, need.measured_at, need.filter_cpu_s, need.cores) == ("continuous", 5000, 0.3, 1)
    assert need.brokers == 3  # no fewer than copies


@pytest.mark.parametrize("words", ["--utilisation 0", "--utilisation 1.5", "--worker-cores 0"])
def test_what_is_no_machine_is_refused(words: str) -> None:
    done = CliRunner().invoke(cli, ["lab", "capacity", *words.split()], standalone_mode=False)
    assert isinstance(done.exception, click.BadParameter)
    assert words.split()[0] in done.exception.format_message()


def test_a_report_without_costs_is_refused() -> None:
    with pytest.raises(UsageError, match="no mode with known costs"):
        estimate([_result("real-time", 100, cpu_s_per_1000=None)], 1000, Machines())


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"results": [{}], "ratios": {}}'])
def test_what_is_no_report_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=r"a\.json .*lab bench"):
        load_report(path)


def test_the_table_goes_into_the_documentation(tmp_path: Path) -> None:
    report, docs = tmp_path / "bench-report.json", tmp_path / "scaling.md"
    report.write_text(json.dumps({"results": [_result("real-time", 5000)], "ratios": {}}))
    docs.write_text("before\n<!-- capacity: begin -->\n<!-- capacity: end -->\n")
    ran = CliRunner().invoke(cli, ["lab", "capacity", str(report), "--rate", "10000", "--docs", str(docs)])
    assert ran.exit_code == 0, ran.output
    assert "10,000 payments/s" in ran.output
    assert "| `real-time` | 5,000 | 0.2 | 0.1 | 4 | 4 | 1 | 3 |" in docs.read_text()


@pytest.mark.parametrize("rate", ["inf", "nan"])
def test_a_rate_is_a_number(rate: str) -> None:
    done = CliRunner().invoke(cli, ["lab", "capacity", "--rate", rate], standalone_mode=False)
    assert isinstance(done.exception, click.BadParameter)
    assert "--rate" in done.exception.format_message()
