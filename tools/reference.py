"""Writes the tables of docs/metrics.md and docs/settings.md from the code; `make generated` calls it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

from annotated_types import Ge, Gt, Le
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from fraud_filter.config import Settings, env_name
from fraud_filter.config.settings import setting_groups
from fraud_filter.home import HOME
from fraud_filter.metrics.catalogue import CATALOGUE, Entry, Program
from fraud_filter.modes import MODES
from lab.harness.tables import markdown, write_between

METRICS, SETTINGS = HOME / "docs/metrics.md", HOME / "docs/settings.md"
_OF_METRICS = ("metric", "meaning")
_OF_SETTINGS = ("setting", "default; also accepted", "meaning")
#: Labels that docs/metrics.md names once.
_OF_ALL = {"mode", "query"}


def write_metrics(file: Path = METRICS) -> None:
    """Replaces the table of each program.

    Raises:
        FraudFilterError: the file has no place for one, or can't be written.
    """
    for program in get_args(Program):
        write_between(file, program, _table(program))


def _table(program: Program) -> str:
    entries = [entry for entry in CATALOGUE if entry.program == program]
    return markdown(_OF_METRICS, [(f"`{entry.name}{_labels(entry)}`", _told(entry)) for entry in entries])


def _labels(entry: Entry[Any]) -> str:
    """Its further labels, as PromQL has them in braces."""
    further = ", ".join(label for label in entry.labels if label not in _OF_ALL)
    return further and f"{{{further}}}"


def _told(entry: Entry[Any]) -> str:
    """What it means; and the modes, where other modes have no values."""
    lacking = set(MODES) - entry.modes
    return f"{entry.help} Modes: {_code(name for name in MODES if name in entry.modes)}." if lacking else entry.help


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "-"


def write_settings(file: Path = SETTINGS) -> None:
    """Replaces the table of each group.

    Raises:
        FraudFilterError: the file has no place for one, or can't be written.
    """
    for group, names in setting_groups().items():
        rows = [_row(name, Settings.model_fields[name]) for name in names]
        write_between(file, group, markdown(_OF_SETTINGS, rows))


def _row(name: str, field: FieldInfo) -> tuple[str, ...]:
    accepted = _accepted(field)
    return f"`{env_name(name)}`", _default(field) + (accepted and f"; {accepted}"), str(field.description)


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if isinstance(value, SecretStr) or value in ("", {}):
        return "-"
    if isinstance(value, Path):
        value = value.relative_to(HOME)
    return f"`{json.dumps(value) if isinstance(value, bool) else value}`"


def _accepted(field: FieldInfo) -> str:
    """The choices beside the default, or the bounds of a number; "" where the description says it."""
    if field.annotation is bool:
        return f"`{json.dumps(not field.default)}`"
    if isinstance(field.default, str) and (choices := get_args(field.annotation)):
        return ", ".join(f"`{choice}`" for choice in choices if choice != field.default)
    bounds = {type(bound): bound for bound in field.metadata}
    least, above, most = bounds.get(Ge), bounds.get(Gt), bounds.get(Le)
    parts = [f"above {above.gt}"] if above else [f"{least.ge}" if most else f"from {least.ge}"] if least else []
    return " to ".join([*parts, *([f"{most.le}"] if most else [])])


if __name__ == "__main__":
    write_metrics()
    write_settings()
