"""Every expression of the dashboards and of the rules, asked of the stack's own Prometheus, and the runbook's page."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

import pytest
import requests
import yaml

from deployed import Deployed
from fraud_filter.home import HOME
from waiting import wait_until

DASHBOARDS = sorted((HOME / "monitoring/grafana/dashboards").glob("*.json"))
RULES = sorted((HOME / "monitoring/prometheus/rules").glob("*.yml"))

#: What Grafana puts in place of its variables, when all are chosen and a page shows a quarter of an hour.
VARIABLES = {
    **dict.fromkeys(("$deployment", "$mode", "$query", "$job", "$instance"), ".*"),
    "$__rate_interval": "1m",
    "$__range": "15m",
}

#: Panels that are rightly empty when all is well, in every mode.
EMPTY = {
    "Alerts that fire": "no alert fires",
    "Certificates": "this stack has none",
    **dict.fromkeys(
        (
            "Rows in the state",
            "Memory and disk of the state",
            "Writing the state",
            "Late rows",
            "Windows that may be cut short",
        ),
        "no rule has features",
    ),
    **dict.fromkeys(("Scores of flagged payments", "Median score by model"), "the rules have no model"),
}

_PHASES = {
    *("Where a batch spends its time", "Offset log and commit log", "Whole batch", "Share of the logs in a batch"),
    "Throughput of a batch",
}
#: Panels and recorded figures that may be empty in a mode. Epochs have no phases and send no progress events
#: (SPARK-23887); in real-time mode nothing is committed before the first batch ends, after minutes.
EMPTY_IN_MODE = {
    "continuous": _PHASES,
    "real-time": {
        *_PHASES,
        *("Payments in a commit", "Offsets", "Consumer lag", "Since the last commit", "Consumer lag by partition"),
        *("Time since progress", "deployment_mode_query:fraud_filter_consumer_lag_records:sum"),
    },
}
#: Enough for the rules that are reckoned once a minute.
PATIENCE_S = 150


def filled(expression: str) -> str:
    """An expression as Grafana sends it."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression, f"a variable that Grafana would not know: {expression}"
    return expression


def queries() -> list[Any]:
    """Panel by panel: (dashboard, panel, [(legend, expression)])."""
    found = []
    for path in DASHBOARDS:
        told = json.loads(path.read_text())["panels"]
        for panel in (one for each in told for one in (each, *each.get("panels", []))):
            if panel["type"] != "row":
                asked = [(target["legendFormat"], target["expr"]) for target in panel["targets"]]
                found.append(pytest.param(panel["title"], asked, id=f"{path.stem}: {panel['title']}"))
    return found


def marks() -> list[Any]:
    """The expressions that mark switches, restarts and changes of the rules."""
    found = [mark for path in DASHBOARDS for mark in json.loads(path.read_text())["annotations"]["list"]]
    return [pytest.param(mark["expr"], id=mark["name"]) for mark in found[:3]]


def rules(kind: str) -> list[Any]:
    """(name, expression) of the alerts (`alert`) or of the recording rules (`record`)."""
    groups = [group for path in RULES for group in yaml.safe_load(path.read_text())["groups"]]
    named = [rule for group in groups for rule in group["rules"] if kind in rule]
    ids = [f"{rule[kind]}-{rule.get('labels', {}).get('severity', '')}".rstrip("-") for rule in named]
    return [pytest.param(rule[kind], rule["expr"], id=name) for rule, name in zip(named, ids, strict=True)]


def ask(stack: Deployed, expression: str) -> list[Any]:
    """What Prometheus answers; an expression that it can't read fails the test with its own words."""
    answer = requests.get(stack.url("PROMETHEUS_PORT", "/api/v1/query"), params={"query": expression}, timeout=30)
    body = answer.json()
    assert body["status"] == "success", body
    result: list[Any] = body["data"]["result"]
    return result


def has_data(stack: Deployed, expression: str) -> bool:
    """Whether there is a number; NaN, as of a share of nothing, is none."""
    return any(value["value"][1] != "NaN" for value in ask(stack, expression))


def may_be_empty(stack: Deployed, name: str) -> bool:
    (up, *_) = wait_until("the filter is scraped", partial(ask, stack, "fraud_filter_up"))
    return name in EMPTY or name in EMPTY_IN_MODE.get(up["metric"]["mode"], ())


@pytest.mark.parametrize(("title", "asked"), queries())
def test_every_query_of_a_panel_has_data(stack: Deployed, title: str, asked: list[tuple[str, str]]) -> None:
    for legend, expression in asked:
        expression = filled(expression)
        ask(stack, expression)
        if not may_be_empty(stack, title):
            wait_until(f"{title}, {legend}", partial(has_data, stack, expression), PATIENCE_S, every_s=2)


@pytest.mark.parametrize("expression", marks())
def test_marks_can_be_asked_for(stack: Deployed, expression: str) -> None:
    ask(stack, filled(expression))


@pytest.mark.parametrize(("name", "expression"), rules("record"))
def test_every_recording_rule_records(stack: Deployed, name: str, expression: str) -> None:
    ask(stack, expression)
    if not may_be_empty(stack, name):
        wait_until(name, partial(has_data, stack, name), PATIENCE_S, every_s=2)


def test_prometheus_evaluates_every_rule_without_an_error(stack: Deployed) -> None:
    def evaluated() -> bool:
        groups = stack.json("PROMETHEUS_PORT", "/api/v1/rules")["data"]["groups"]
        known = {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}
        expected = {parameters.values[0] for kind in ("alert", "record") for parameters in rules(kind)}
        return known.keys() == expected and set(known.values()) == {"ok"}

    assert wait_until("all rules are ok", evaluated, PATIENCE_S)


def test_alerts_have_somewhere_to_go(stack: Deployed) -> None:
    def known() -> list[str]:
        found = stack.json("PROMETHEUS_PORT", "/api/v1/alertmanagers")["data"]["activeAlertmanagers"]
        return [each["url"] for each in found]

    assert wait_until("an Alertmanager", known) == ["http://alertmanager:9093/api/v2/alerts"]


def test_no_alert_fires_when_all_is_well(stack: Deployed) -> None:
    """Latency is what it is on this machine, and a stack that has just been started may have restarted."""

    def firing() -> list[str]:
        alerts = stack.json("PROMETHEUS_PORT", "/api/v1/alerts")["data"]["alerts"]
        names = {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}
        return sorted(names - {"Watchdog", "FraudFilterLatencyObjectiveMissed", "FraudFilterRestartLoop"})

    wait_until("no alert fires", lambda: not firing(), timeout_s=240)


def test_the_runbook_is_a_page_with_a_section_for_every_alert(stack: Deployed) -> None:
    answer = requests.get(stack.url("PROMETHEUS_PORT", "/consoles/runbook.html"), timeout=30)
    answer.raise_for_status()
    sections = set(re.findall(r'<h[1-4] id="([^"]+)"', answer.text))
    assert {name.lower() for name in (parameters.values[0] for parameters in rules("alert"))} <= sections
