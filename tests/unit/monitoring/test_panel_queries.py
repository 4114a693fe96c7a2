"""What Prometheus answers to the panels that must show a filter that is gone, or what it does: asked of promtool."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from fraud_filter.home import HOME

PANELS = [
    one
    for board in (HOME / "monitoring/grafana/dashboards").glob("*.json")
    for panel in json.loads(board.read_text())["panels"]
    for one in (panel, *panel.get("panels", []))
]
LABELS = 'job="fraud-filter", instance="f", mode="continuous", query="q"'


def asked(title: str) -> str:
    """The query of a panel, as Grafana sends it when all is chosen."""
    (panel,) = [panel for panel in PANELS if panel["title"] == title]
    return re.sub(r"\$(?:deployment|mode|query|job|instance)\b", ".*", panel["targets"][0]["expr"])


def holds(promtool: str, directory: Path, series: dict[str, str], title: str, answers: list[dict[str, object]]) -> None:
    """Fails, with promtool's words, when the panel's query has another answer after a minute of these series."""
    test = {
        "interval": "5s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": asked(title), "eval_time": "1m", "exp_samples": answers}],
    }
    file = directory / "panel.yml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "5s", "tests": [test]}))
    done = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_filter_that_is_gone_is_0_which_is_red(promtool: str, tmp_path: Path) -> None:
    holds(promtool, tmp_path, {}, "Filter", [{"labels": '{mode="none"}', "value": 0}])
    holds(promtool, tmp_path, {}, "What the filter does", [{"labels": '{mode="none"}', "value": 0}])


def test_a_filter_that_answers_is_itself_alone(promtool: str, tmp_path: Path) -> None:
    series = f"fraud_filter_healthy{{{LABELS}}}"
    holds(promtool, tmp_path, {series: "1x20"}, "Filter", [{"labels": series, "value": 1}])


@pytest.mark.parametrize(("state", "number"), [("running", 4), ("backing-off", 6)])
def test_what_a_filter_does_is_one_number(promtool: str, tmp_path: Path, state: str, number: int) -> None:
    states = ("starting", "running", "waiting-for-slots", "backing-off", "stopping")
    series = {f'fraud_filter_state{{{LABELS}, state="{each}"}}': "1x20" if each == state else "0x20" for each in states}
    holds(
        promtool, tmp_path, series, "What the filter does",
        [{"labels": '{mode="continuous", query="q"}', "value": number}],
    )  # fmt: skip


def test_alerts_that_fire_are_told_by_severity(promtool: str, tmp_path: Path) -> None:
    def alert(name: str, severity: str, state: str = "firing") -> str:
        return f'ALERTS{{alertname="{name}", alertstate="{state}", severity="{severity}"}}'

    series = {
        alert("FraudFilterDown", "critical"): "1x20",
        alert("FraudFilterLagGrows", "warning"): "1x20",
        alert("FraudFilterStalled", "critical", "pending"): "1x20",
    }
    holds(
        promtool, tmp_path, series, "Alerts that fire",
        [
            {"labels": alert("FraudFilterDown", "critical").removeprefix("ALERTS"), "value": 2},
            {"labels": alert("FraudFilterLagGrows", "warning"), "value": 1},
        ],
    )  # fmt: skip


@pytest.mark.parametrize(("told", "shown"), [("1.25", 0.25), ("0.5", 0)])
def test_handlers_of_a_broker_that_is_a_controller_too_are_its_own(
    promtool: str, tmp_path: Path, told: str, shown: float
) -> None:
    """Kafka 4.1 adds the controller's, which are idle (KAFKA-19606)."""
    idle = {
        'kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent{job="kafka", instance="a"}': f"{told}x20"
    }
    both = {**idle, 'kafka_controller_kafkacontroller_activecontrollercount{job="kafka", instance="a"}': "0x20"}
    holds(promtool, tmp_path, both, "Idle handlers", [{"labels": "{}", "value": shown}])


def test_handlers_of_a_broker_alone_are_as_it_says(promtool: str, tmp_path: Path) -> None:
    idle = {'kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent{job="kafka", instance="a"}': "0.5x20"}
    holds(promtool, tmp_path, idle, "Idle handlers", [{"labels": "{}", "value": 0.5}])
