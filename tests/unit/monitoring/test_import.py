"""Others can import rules and dashboards as monitoring/README.md says."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

from fraud_filter.home import HOME
from lab.harness.tables import find_place

README = HOME / "monitoring/README.md"
RULES = HOME / "monitoring/prometheus/rules"


def snippet() -> str:
    """The Prometheus configuration that the document shows."""
    before, after = find_place(README, "prometheus")
    text = README.read_text(encoding="utf-8").removeprefix(before).removesuffix(after).strip()
    return text.removeprefix("```yaml\n").removesuffix("```")


def scrapes() -> set[str]:
    config: dict[str, Any] = yaml.safe_load(snippet())
    return {scrape["job_name"] for scrape in config["scrape_configs"]}


def test_promtool_takes_the_rules_as_the_document_says(promtool: str, tmp_path: Path) -> None:
    shutil.copytree(RULES, tmp_path / "rules")
    (tmp_path / "prometheus.yml").write_text(snippet())
    command = [promtool, "check", "config", "--lint=all", "--lint-fatal", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    for path in RULES.glob("*.yml"):
        assert f"Checking {tmp_path}/rules/{path.name}" in done.stdout


def test_every_job_that_a_rule_or_a_panel_asks_for_is_in_the_document() -> None:
    texts = [path.read_text() for path in RULES.glob("*.yml")]
    texts += [path.read_text().replace('\\"', '"') for path in HOME.glob("monitoring/grafana/dashboards/*.json")]
    asked = {job for text in texts for jobs in re.findall(r'job(?:=~?|!~?)"([^"]+)"', text) for job in jobs.split("|")}
    assert asked - {"$job"} == scrapes()
