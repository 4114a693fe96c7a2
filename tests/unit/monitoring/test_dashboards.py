"""Dashboards, rules and runbook as they are written down: they fit each other, and ask for metrics that exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fraud_filter.home import HOME
from fraud_filter.metrics.catalogue import CATALOGUE

BOARDS = HOME / "monitoring/grafana/boards"
DASHBOARDS = sorted((HOME / "monitoring/grafana/dashboards").glob("*.json"))
RULES = sorted((HOME / "monitoring/prometheus/rules").glob("*.yml"))
RUNBOOK = (HOME / "docs/runbook.md").read_text()
SOURCES = yaml.safe_load((HOME / "monitoring/grafana/provisioning/datasources/prometheus.yml").read_text())

AGENT_OF_SPARK = "spark/conf/exporter.yml"
#: What Grafana itself puts into an expression, besides a dashboard's own variables.
BUILT_IN = {"__rate_interval", "__range"}


def rules() -> list[dict[str, Any]]:
    groups = [group for path in RULES for group in yaml.safe_load(path.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"]]


def exported() -> set[str]:
    """Names of the series that the program, the agents in Kafka and Spark, and the recording rules give."""
    suffixes = {"histogram": ("_bucket", "_count", "_sum")}
    names = {entry.name + suffix for entry in CATALOGUE for suffix in suffixes.get(entry.type, ("",))}
    agents = [yaml.safe_load((HOME / path).read_text())["rules"] for path in ("kafka/exporter.yml", AGENT_OF_SPARK)]
    names |= {rule["name"] for agent in agents for rule in agent}
    return names | {rule["record"] for rule in rules() if "record" in rule}


def asked(expression: str) -> set[str]:
    """The names in an expression that are ours: the program's, the agents', the recording rules'."""
    bare = re.sub(r'"[^"]*"', '""', expression)
    return set(re.findall(r"\b(?:mode_query:[\w:]+|fraud_filter_\w+|kafka_\w+|spark_\w+)", bare))


def sections() -> set[str]:
    """What a link into the runbook may name, as both GitHub and the page in Prometheus call the headings."""
    titles = re.findall(r"^#+ (.+)$", RUNBOOK, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


def load(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def panels(path: Path) -> list[dict[str, Any]]:
    return [panel for panel in load(path)["panels"] if panel["type"] != "row"]


def lost(before: Any, again: Any, where: str) -> Iterator[str]:
    """Where `again` lacks something of `before` or has another value; it may have more, as defaults written out."""
    if isinstance(before, dict) and isinstance(again, dict):
        for key, value in before.items():
            yield from lost(value, again.get(key), f"{where}/{key}")
    elif isinstance(before, list) and isinstance(again, list) and len(before) == len(again):
        for number, (value, other) in enumerate(zip(before, again, strict=True)):
            yield from lost(value, other, f"{where}/{number}")
    elif before != again:
        yield f"{where}: {before!r} became {again!r}"


each_dashboard = pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Grafana's models need Python 3.11")
def test_the_files_are_what_the_boards_make(tmp_path: Path) -> None:
    """Grafana's own models refuse what is no dashboard; a file that was changed by hand is no longer theirs."""
    subprocess.run([sys.executable, BOARDS, tmp_path], check=True, timeout=60)
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_text() for path in DASHBOARDS}, "run `make dashboards`"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Grafana's models need Python 3.11")
@each_dashboard
def test_grafana_s_models_read_the_files_without_loss(path: Path) -> None:
    program = (
        "import json, sys; from grafana_foundation_sdk.models.dashboard import Dashboard; "
        "from grafana_foundation_sdk.cog.encoder import JSONEncoder; "
        "from grafana_foundation_sdk.cog.plugins import register_default_plugins; register_default_plugins(); "
        "print(JSONEncoder().encode(Dashboard.from_json(json.load(sys.stdin))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=path.read_text(), capture_output=True, text=True, check=True, timeout=60
    )
    again, before = json.loads(done.stdout), load(path)
    # The marks' texts are Prometheus' own, which the schema leaves to the data source.
    del again["annotations"], before["annotations"]
    assert list(lost(before, again, "")) == []


def test_there_are_three_and_each_is_one_of_a_kind() -> None:
    assert {load(path)["title"] for path in DASHBOARDS} == {"Fraud filter", "Engine", "Infrastructure"}
    assert len({load(path)["uid"] for path in DASHBOARDS}) == len(DASHBOARDS)


@each_dashboard
def test_they_choose_query_and_mode_and_mark_switches_and_restarts(path: Path) -> None:
    board = load(path)
    names = {variable["name"] for variable in board["templating"]["list"]}
    assert names == {"query", "mode", "runbook"}
    assert [mark["name"] for mark in board["annotations"]["list"]] == ["Mode", "Restart"]
    expressions = [target["expr"] for panel in panels(path) for target in panel["targets"]]
    expressions += [mark["expr"] for mark in board["annotations"]["list"]]
    for expression in expressions:
        assert set(re.findall(r"\$\{?(\w+)", expression)) <= names | BUILT_IN, expression


@each_dashboard
def test_every_panel_says_what_it_shows_and_links_to_the_runbook(path: Path) -> None:
    identities = [panel["id"] for panel in load(path)["panels"]]
    assert len(identities) == len(set(identities))
    for panel in panels(path):
        assert len(panel["description"]) > 20, panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["datasource"]["uid"] == SOURCES["datasources"][0]["uid"]
        (link,) = panel["links"]
        address, _, section = link["url"].partition("#")
        assert address == "${runbook}"
        assert section in sections(), panel["title"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        for target in panel["targets"]:
            assert target["legendFormat"], panel["title"]
            if path.stem == "fraud-filter" and asked(target["expr"]):
                assert 'mode=~"$mode", query=~"$query"' in target["expr"], panel["title"]


@each_dashboard
def test_panels_do_not_lie_on_each_other(path: Path) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in load(path)["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


@each_dashboard
def test_dashboards_ask_for_metrics_that_exist(path: Path) -> None:
    for panel in panels(path):
        for target in panel["targets"]:
            assert asked(target["expr"]) <= exported(), panel["title"]


def test_rules_ask_for_metrics_that_exist() -> None:
    for rule in rules():
        assert asked(rule["expr"]) <= exported(), rule


def test_every_alert_says_what_it_is_and_has_a_section_in_the_runbook() -> None:
    for rule in rules():
        if "alert" in rule:
            assert rule["labels"]["severity"] in ("critical", "warning")
            assert rule["annotations"]["summary"]
            assert "$value" in rule["annotations"]["description"], rule["alert"]
            section = rule["alert"].lower()
            assert rule["annotations"]["runbook_url"] == f"{{{{ $externalURL }}}}/consoles/runbook.html#{section}"
            assert section in sections()


def test_every_alert_is_tested_when_it_fires_and_when_it_does_not() -> None:
    fires: set[str] = set()
    quiet: set[str] = set()
    for path in (HOME / "monitoring/prometheus/tests").glob("*.yml"):
        for case in yaml.safe_load(path.read_text())["tests"]:
            for check in case.get("alert_rule_test", []):
                (fires if check["exp_alerts"] else quiet).add(check["alertname"])
    names = {rule["alert"] for rule in rules() if "alert" in rule}
    assert fires == names
    assert quiet == names


def test_the_runbook_names_commands_and_settings_that_exist() -> None:
    makefile = (HOME / "Makefile").read_text()
    example = (HOME / ".env.example").read_text()
    services = yaml.safe_load((HOME / "docker-compose.yml").read_text())["services"]
    for target in re.findall(r"`make ([a-z-]+)", RUNBOOK):
        assert f"\n{target}:" in makefile, target
    for setting in re.findall(r"`([A-Z]+(?:_[A-Z]+)+)\b", RUNBOOK):
        assert f"\n{setting}=" in example, setting
    for service in re.findall(r"`docker compose (?:logs|ps|restart)(?: --tail \d+)? ([a-z-]+)`", RUNBOOK):
        assert service in services, service
    assert asked(RUNBOOK) <= exported()


def test_the_runbook_can_be_a_page_of_prometheus() -> None:
    """Prometheus takes it for a Go template."""
    assert "{{" not in RUNBOOK
