"""A short bench as a user runs it: real broker, real Spark, the plain loop, and what it writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram

from browser import measure

#: `test_experiment_run` is a shorter bench.
pytestmark = pytest.mark.exhaustive
NAMES = ("real-time", "floor")
SECONDS = 6
#: One rate, one round, as short as figures allow; twice as much as 100/s for more of them.
SHORT = ("--contenders", ",".join(NAMES), "--rates", "200", "--rounds", "1", "--seconds", str(SECONDS))
QUICK = ("--warmup", "3", "--warmup-rate", "300", "--settle", "1", "--repeats", "0")


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that a bench has written into."""
    directory = tmp_path_factory.mktemp("bench")
    argv = [sys.executable, "-m", "fraud_filter", "lab", "bench", *SHORT, *QUICK, "--output", str(directory / "out")]
    env = {**os.environ, "TMPDIR": str(directory)}
    done = subprocess.run(argv, cwd=directory, env=env, capture_output=True, text=True, check=False, timeout=450)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "real-time/floor at 200/s: p50" in done.stdout
    assert "Traceback" not in done.stderr
    return directory / "out"


@pytest.fixture(scope="module")
def report(output: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((output / "bench-report.json").read_text())
    return data


@pytest.mark.timeout(480)  # three and a half minutes on two cores where nothing else runs
def test_every_contender_is_measured_and_audited(report: dict[str, Any]) -> None:
    assert report["ok"] is True
    assert [result["mode"] for result in report["results"]] == list(NAMES)
    for result in report["results"]:
        assert (result["lost"], result["duplicated"], result["unexpected"]) == (0, 0, 0)
        assert 0 < result["p50_ms"] <= result["p90_ms"] <= result["p99_ms"] <= result["p999_ms"] <= result["max_ms"]
        assert result["kept_rate"] == pytest.approx(200, rel=0.1)
        assert result["cpu_s_per_1000"] > 0
        assert result["rss_mib"] > 50
    median = {result["mode"]: result["p50_ms"] for result in report["results"]}
    ratio = report["ratios"]["real-time/floor"]["p50"]
    assert ratio == pytest.approx(median["real-time"] / median["floor"], rel=0.01)
    assert {"librdkafka", "kafka", "spark"} <= report["versions"].keys()


def test_the_raw_figures_agree_with_each_other(report: dict[str, Any]) -> None:
    for start in report["rounds"]:
        (rate,) = start["rates"]
        assert rate["payments"] == pytest.approx(200 * SECONDS, rel=0.02)
        assert rate["decisions"] == pytest.approx(rate["payments"] / 2, rel=0.2)  # half are flagged
        assert sum(rate["append_ms"].values()) == rate["decisions"]
        assert sum(second["decisions"] for second in rate["timeline"]) == rate["decisions"]
        due = HdrHistogram.decode(rate["due_us_hdr"])
        assert due.get_total_count() == rate["decisions"]
        # The due time comes before the append, whatever the rounding of the stamps.
        assert due.get_value_at_percentile(50) / 1000 > rate["append"]["p50_ms"] - 1
        assert 0 <= rate["stolen_share"] < 1
        assert start["repeated"] == 0
        assert start["first_decision_s"] > 0
        assert start["uss_mib"] > 20


def test_a_start_of_spark_takes_longer_than_one_of_the_plain_loop(report: dict[str, Any]) -> None:
    first = {start["contender"]: start["first_decision_s"] for start in report["rounds"]}
    assert first["real-time"] > first["floor"]


def test_all_files_are_there_and_a_browser_shows_the_page(output: Path, tmp_path: Path) -> None:
    names = {path.name for path in output.iterdir()}
    assert names == {
        "bench-report.html",
        "bench-report.json",
        "bench-percentiles-200.png",
        "bench-over-time.png",
        "bench-throughput.png",
        "bench-cost.png",
    }
    told = measure(output / "bench-report.html", tmp_path)
    assert len(told["plots"]) == 4
    assert (told["outside"], told["loaded"], told["wide"]) == ([], [], False)
