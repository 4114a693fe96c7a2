"""What users and their programs hold on to stays: verbs, settings, metrics, log events, exit codes, JSON fields.

A change of `tests/data/surface.yml` belongs into CHANGELOG: whatever goes or is renamed breaks somebody.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from fraud_filter import errors
from fraud_filter.audit.result import AuditResult
from fraud_filter.checkpoint.inspection import Inspection
from fraud_filter.cli.main import cli
from fraud_filter.config import Settings, env_name
from fraud_filter.generator.sender import Report as Sent
from fraud_filter.home import HOME
from fraud_filter.metrics.catalogue import CATALOGUE
from fraud_filter.monitor.health import Verdict as Health
from fraud_filter.query.rules_test import Verdict as Tried

SURFACE = Path(__file__).parents[2] / "data/surface.yml"


def _verbs(command: click.Command, name: str = "fraud-filter") -> Iterator[tuple[str, list[str]]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for one in command.list_commands(context):
            found = command.get_command(context, one)
            assert found is not None
            yield from _verbs(found, f"{name} {one}")
    else:
        yield name, sorted(option for one in command.params for option in (*one.opts, *one.secondary_opts))


def _events() -> list[str]:
    """Names of log events: the first argument of `_log.info` and the like, and what the probe prints."""
    calls = (
        call
        for file in HOME.glob("app/fraud_filter/**/*.py")
        for call in ast.walk(ast.parse(file.read_text()))
        if isinstance(call, ast.Call) and ast.unparse(call.func).startswith(("_log.", "log.")) and call.args
    )
    names = {name for call in calls for name in re.findall(r"'([a-z_]+)'", ast.unparse(call.args[0]))}
    return sorted({*names, "probe_started"})


NOW: dict[str, Any] = {
    "verbs": dict(_verbs(cli)),
    "settings": [env_name(name) for name in Settings.model_fields],
    "metrics": {one.name: list(one.labels) for one in CATALOGUE},
    "events": _events(),
    "exit_codes": {name: code for name, code in vars(errors).items() if name.startswith("EXIT_")},
    "json": {
        verb: sorted(one.name for one in dataclasses.fields(printed))
        for verb, printed in {
            "audit": AuditResult,
            "checkpoint inspect": Inspection,
            "generate": Sent,
            "health": Health,
            "rules test": Tried,
        }.items()
    },
}


@pytest.mark.parametrize("kind", NOW)
def test_nothing_that_users_hold_on_to_has_gone_or_come(kind: str) -> None:
    recorded = yaml.safe_load(SURFACE.read_text(encoding="utf-8"))[kind]
    if kind == "settings":
        assert sorted(NOW[kind]) == sorted(recorded)
    else:
        assert NOW[kind] == recorded
