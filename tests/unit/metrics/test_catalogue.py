"""The catalogue of metrics against the pages that programs serve."""

from __future__ import annotations

import re
import subprocess
from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest

from fraud_filter.config import load
from fraud_filter.generator.sender import GeneratorMetrics, Tally
from fraud_filter.metrics.catalogue import CATALOGUE, Program
from fraud_filter.metrics.server import MetricsServer, Registry, get_page
from fraud_filter.monitor.monitor import Monitor
from fraud_filter.probe.probe import Probe

#: Nobody listens there.
SETTINGS = load({"kafka_bootstrap_servers": "127.0.0.1:9", "metrics_port": "0"}, Path("/dev/null"))


def page(program: Program) -> str:
    """What the program serves before it has met Kafka or Spark."""
    if program == "filter":
        with closing(Monitor(SETTINGS, ())) as monitor:
            return get_page("127.0.0.1", monitor.port, "/metrics", 5)[1]
    registry = Registry()
    if program == "probe":
        Probe(SETTINGS, registry)
    else:
        GeneratorMetrics(registry, Tally(sent=7, failed=2, late=1))
    server = MetricsServer(registry, "127.0.0.1", 0, "probe_port")
    try:
        return get_page("127.0.0.1", server.port, "/metrics", 5)[1]
    finally:
        server.stop()


@pytest.mark.parametrize("program", get_args(Program))
def test_a_page_has_what_the_catalogue_has_and_in_its_order(program: Program) -> None:
    served = re.findall(r"^# HELP (\w+) (.+)\n# TYPE \1 (\w+)$", page(program), re.MULTILINE)
    own = [each for each in served if not each[0].startswith("process_")]
    assert own == [(entry.name, entry.help, entry.type) for entry in CATALOGUE if entry.program == program]


def test_a_name_is_given_once() -> None:
    assert len({entry.name for entry in CATALOGUE}) == len(CATALOGUE) > 30


def test_the_generator_s_page_has_its_counts() -> None:
    served = page("generator")
    for name, value in (("sent", 7), ("failed", 2), ("late", 1)):
        assert f"fraud_filter_generator_{name}_records_total {value}.0" in served


@pytest.mark.parametrize("program", get_args(Program))
def test_a_page_keeps_to_prometheus_conventions(promtool: str, program: Program) -> None:
    """By Prometheus' own linter."""
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=page(program).encode(), capture_output=True, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")
    wrong = b"# HELP x_ms Time.\n# TYPE x_ms counter\nx_ms 1\n"
    assert subprocess.run([promtool, "check", "metrics"], input=wrong, capture_output=True, check=False).returncode
