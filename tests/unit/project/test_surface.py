"""What users and their programs hold on to stays: verbs with options, settings, metrics with labels.

A change of `tests/data/surface.yml` belongs into CHANGELOG: whatever goes or is renamed breaks somebody.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from fraud_filter.cli.main import cli
from fraud_filter.config import Settings, env_name
from fraud_filter.metrics.catalogue import CATALOGUE

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


NOW: dict[str, Any] = {
    "verbs": dict(_verbs(cli)),
    "settings": [env_name(name) for name in Settings.model_fields],
    "metrics": {one.name: list(one.labels) for one in CATALOGUE},
}


@pytest.mark.parametrize("kind", NOW)
def test_nothing_that_users_hold_on_to_has_gone_or_come(kind: str) -> None:
    recorded = yaml.safe_load(SURFACE.read_text(encoding="utf-8"))[kind]
    if kind == "settings":
        assert sorted(NOW[kind]) == sorted(recorded)
    else:
        assert NOW[kind] == recorded
