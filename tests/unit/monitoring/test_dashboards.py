"""Dashboards, rules and runbook as they are written down: they fit each other, and ask for metrics that exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from fraud_filter.home import HOME
from fraud_filter.metrics.catalogue import CATALOGUE
from lab.harness.tables import find_place

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
    return set(re.findall(r"\b(?:deployment_mode_query:[\w:]+|fraud_filter_\w+|kafka_\w+|spark_\w+)", bare))


def sections() -> set[str]:
    """What a link into the runbook may name, as both GitHub and the page in Prometheus call the headings."""
    titles = re.findall(r"^#+ (.+)$", RUNBOOK, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


def load(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def panels(path: Path) -> list[dict[str, Any]]:
    """All of a dashboard, those in collapsed rows too."""
    found = [one for panel in load(path)["panels"] for one in (panel, *panel.get("panels", []))]
    return [panel for panel in found if panel["type"] != "row"]


each_dashboard = pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)


def test_the_files_are_what_the_boards_make(tmp_path: Path) -> None:
    """Grafana's own models refuse what is no dashboard; a file that was changed by hand is no longer theirs."""
    subprocess.run([sys.executable, BOARDS, tmp_path], check=True, timeout=200)
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_text() for path in DASHBOARDS}, "run `make generated`"


@each_dashboard
def test_they_choose_query_and_mode_and_mark_switches_restarts_and_rules(path: Path) -> None:
    board = load(path)
    names = {variable["name"] for variable in board["templating"]["list"]}
    assert names == {"datasource", "deployment", "query", "mode", "job", "instance", "runbook"}
    (source,) = (variable for variable in board["templating"]["list"] if variable["name"] == "datasource")
    assert source["current"]["value"] == SOURCES["datasources"][0]["uid"]
    assert [mark["name"] for mark in board["annotations"]["list"]] == ["Mode", "Restart", "Rules"]
    expressions = [target["expr"] for panel in panels(path) for target in panel["targets"]]
    expressions += [mark["expr"] for mark in board["annotations"]["list"]]
    for expression in expressions:
        assert set(re.findall(r"\$\{?(\w+)", expression)) <= names | BUILT_IN, expression


@each_dashboard
def test_every_panel_says_what_it_shows_and_links_to_the_runbook(path: Path) -> None:
    identities = [panel["id"] for panel in panels(path)]
    assert len(identities) == len(set(identities))
    for panel in panels(path):
        assert len(panel["description"]) > 20, panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"
        (link,) = panel["links"]
        address, _, section = link["url"].partition("#")
        assert address == "${runbook}"
        assert section in sections(), panel["title"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        for target in panel["targets"]:
            assert target["legendFormat"], panel["title"]
            assert 'deployment=~"$deployment"' in target["expr"], panel["title"]
            if path.stem == "fraud-filter" and "_certificate_" not in target["expr"]:
                assert "ALERTS" in target["expr"] or 'mode=~"$mode", query=~"$query"' in target["expr"], panel["title"]
            if path.stem == "fraud-filter-infrastructure":
                assert 'job=~"$job", instance=~"$instance"' in target["expr"], panel["title"]


@each_dashboard
def test_dashboards_ask_for_metrics_that_exist(path: Path) -> None:
    for panel in panels(path):
        for target in panel["targets"]:
            assert asked(target["expr"]) <= exported(), panel["title"]


def test_rates_are_taken_of_counters_only() -> None:
    """A gauge that falls, as when a topic is made again, counts as a reset there, and the rate is a peak."""
    gauges = {entry.name for entry in CATALOGUE if entry.type == "gauge"}
    expressions = [rule["expr"] for rule in rules()]
    expressions += [target["expr"] for path in DASHBOARDS for panel in panels(path) for target in panel["targets"]]
    for expression in expressions:
        assert not gauges & set(re.findall(r"\bi?(?:rate|increase)\((\w+)", expression)), expression


def test_rules_join_by_the_deployment() -> None:
    """Two filters on one Prometheus: what one does says nothing of the other."""
    for rule in rules():
        for labels in re.findall(r"\b(?:on|by) \(([^)]*)\)", rule["expr"]):
            assert "deployment" in labels.split(", "), rule


def test_every_target_of_the_stack_has_its_deployment() -> None:
    folder = HOME / "monitoring/prometheus"
    for path in (folder / "prometheus.yml", *folder.glob("*/*.yml"), folder / "itself.yml"):
        for job in yaml.safe_load(path.read_text()).get("scrape_configs") or []:
            labels = [each.get("labels", {}) for each in job.get("static_configs", [])]
            relabelled = {each["target_label"]: each["replacement"] for each in job.get("relabel_configs", [])}
            assert all({**each, **relabelled}["deployment"] == "stack" for each in labels or [{}]), (path, job)


def test_rules_ask_for_metrics_that_exist() -> None:
    for rule in rules():
        assert asked(rule["expr"]) <= exported(), rule


def test_every_alert_says_what_it_is_and_has_a_section_in_the_runbook() -> None:
    for rule in rules():
        if "alert" in rule:
            always = rule["alert"] == "Watchdog"
            assert rule["labels"]["severity"] in (("none",) if always else ("critical", "warning"))
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
            for check in case.get("promql_expr_test", []):
                labels = " ".join(each["labels"] for each in check["exp_samples"])
                fires.update(re.findall(r'alertname="(\w+)"', labels))
    names = {rule["alert"] for rule in rules() if "alert" in rule}
    assert fires == names
    assert quiet == names - {"Watchdog"}


def test_one_cause_is_one_message() -> None:
    """What holds back others does so in its own deployment only; no alert holds itself back, and all of them exist."""
    config = yaml.safe_load((HOME / "monitoring/alertmanager/alertmanager.yml").read_text())
    names = {rule["alert"] for rule in rules() if "alert" in rule}
    held: dict[str, set[str]] = {}
    for rule in config["inhibit_rules"]:
        assert "deployment" in rule["equal"]
        found = re.search(r'alertname="(\w+)"', rule["source_matchers"][0])
        if found:
            matchers = " ".join(rule["target_matchers"])
            (target,) = re.findall(r'alertname=~?"([^"]+)"', matchers)
            targets = {name for name in names if re.fullmatch(target, name)}
            assert len(targets) == len(re.sub(r".*\(|\)", "", target).split("|")), target
            held.setdefault(found[1], set()).update(targets)
    assert held["FraudFilterBrokerDown"] == {"FraudFilterUnderReplicated"}  # others of the brokers may go on
    assert {"FraudFilterBrokerDown", "FraudFilterDown"} <= held["FraudFilterKafkaDown"]
    assert "FraudFilterNoStandby" in held["FraudFilterDown"]
    assert all(cause in names and cause not in targets for cause, targets in held.items())
    (watchdog,) = config["route"]["routes"]
    assert watchdog == {"matchers": ['alertname="Watchdog"'], "receiver": "nobody"}
    # entrypoint.sh adds the webhook to the last receiver.
    assert config["receivers"] == [{"name": "nobody"}, {"name": "on-call"}]


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


def panel_of(title: str) -> dict[str, Any]:
    """The one panel of that title, on whatever board."""
    (found,) = [panel for path in DASHBOARDS for panel in panels(path) if panel["title"] == title]
    return found


def test_a_number_that_is_not_there_is_neither_green_nor_coloured_without_levels() -> None:
    """Grafana draws it in the colour of the lowest level: no answer about offline partitions was green."""
    numbers = [panel for path in DASHBOARDS for panel in panels(path) if panel["type"] == "stat"]
    assert len(numbers) > 10
    for panel in numbers:
        config = panel["fieldConfig"]["defaults"]
        absent = [each["options"] for each in config["mappings"] if each["type"] == "special"]
        lowest, *above = config["thresholds"]["steps"]
        if lowest["color"] != "red":
            assert absent == [{"match": "null+nan", "result": {"text": "No data", "color": "#6e6e6e"}}], panel["title"]
        judged = above or panel.get("transformations")
        assert panel["options"]["colorMode"] == ("background" if judged else "none"), panel["title"]


def test_the_objective_is_what_the_probe_tells_everywhere() -> None:
    """It is a setting: no rule and no panel may hold a number of its own."""
    slow = [
        rule["expr"]
        for rule in rules()
        if rule.get("record", "").startswith("deployment_mode_query:fraud_filter_slow_decisions")
    ]
    assert len(slow) == 5
    assert all("rate(fraud_filter_slow_decisions_total[" in expr and "le=" not in expr for expr in slow)
    told = [rule["annotations"] for rule in rules() if rule.get("alert") == "FraudFilterLatencyObjectiveMissed"]
    assert len(told) == 2
    assert all("fraud_filter_latency_objective_seconds" in each["description"] for each in told)
    for title in ("End-to-end latency", "Median latency", "99th percentile"):
        panel = panel_of(title)
        own = panel["fieldConfig"]["defaults"].get("thresholds", {"steps": []})["steps"]
        assert {step["color"] for step in own} <= {"green"}
        (asked_for,) = [target for target in panel["targets"] if target["refId"] == "objective"]
        assert "fraud_filter_latency_objective_seconds" in asked_for["expr"]
        (drawn,) = panel["transformations"]
        assert drawn["options"] == {
            "configRefId": "objective",
            "mappings": [{"fieldName": asked_for["legendFormat"], "handlerKey": "threshold1"}],
        }


# -- others can import rules and dashboards as monitoring/README.md says


README = HOME / "monitoring/README.md"
RULE_FILES = HOME / "monitoring/prometheus/rules"


def snippet() -> str:
    """The Prometheus configuration that the document shows."""
    before, after = find_place(README, "prometheus")
    text = README.read_text(encoding="utf-8").removeprefix(before).removesuffix(after).strip()
    return text.removeprefix("```yaml\n").removesuffix("```")


def test_promtool_takes_the_rules_as_the_document_says(promtool: str, tmp_path: Path) -> None:
    shutil.copytree(RULE_FILES, tmp_path / "rules")
    (tmp_path / "prometheus.yml").write_text(snippet())
    command = [promtool, "check", "config", "--lint=all", "--lint-fatal", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    for path in RULE_FILES.glob("*.yml"):
        assert f"Checking {tmp_path}/rules/{path.name}" in done.stdout


def test_every_job_that_a_rule_or_a_panel_asks_for_is_in_the_document() -> None:
    texts = [path.read_text() for path in RULE_FILES.glob("*.yml")]
    texts += [path.read_text().replace('\\"', '"') for path in HOME.glob("monitoring/grafana/dashboards/*.json")]
    asked = {job for text in texts for jobs in re.findall(r'job(?:=~?|!~?)"([^"]+)"', text) for job in jobs.split("|")}
    assert asked - {"$job"} == {scrape["job_name"] for scrape in yaml.safe_load(snippet())["scrape_configs"]}
