"""A change as it is written on the command line: `linger_ms=5` or `rule_count=200`, several joined by `;`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fraud_filter.config import Settings, load
from fraud_filter.errors import UsageError
from lab.bench.plan import MAX_PARTITIONS, BenchPlan

BASE = "as it is"
PARTITIONS, RULE_COUNT, BLOCKED_IDS = "partitions", "rule_count", "blocked_ids"
#: What can be changed besides settings, and the most of it.
SIZES = {PARTITIONS: MAX_PARTITIONS, RULE_COUNT: 1000, BLOCKED_IDS: 5_000_000}
#: The directory that takes the checkpoint of each start.
CHECKPOINT = "checkpoint"
#: Settings that an experiment needs for itself: a change of theirs would do nothing, or harm.
_OWN = {
    "mode",
    "source",
    "sink",
    "kafka_bootstrap_servers",
    "kafka_security_protocol",
    "input_topic",
    "flagged_topic",
    "rejected_topic",
    "starting_offsets",
    "metrics_port",
}


@dataclass(frozen=True)
class Change:
    """Settings by name, checked, and the words that they were given in; without any it is the mode as it is.

    `sizes`: of the input topic (`partitions`), of the rules file (`rule_count`) and of its block lists
    (`blocked_ids`).
    """

    name: str = BASE
    settings: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def checkpoints(self) -> Path | None:
        """The directory that is to take checkpoints; None: the usual one."""
        return Path(self.settings[CHECKPOINT]).resolve() if CHECKPOINT in self.settings else None

    def plan(self, plan: BenchPlan) -> BenchPlan:
        """The plan with the partitions that are asked for, its own otherwise."""
        return replace(plan, partitions=self.sizes.get(PARTITIONS, plan.partitions))


def parse_change(text: str) -> Change:
    """The change in words such as `linger_ms=5;max_restarts=0` or `spark_conf={"spark.cores.max": "4"}`.

    Raises:
        UsageError: no such setting, one that an experiment needs for itself, or a value that is not accepted.
    """
    given: dict[str, str] = {}
    for part in text.split(";"):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals or name not in {*Settings.model_fields, *SIZES}:
            raise UsageError(
                f"argument CHANGE: {part.strip()!r} is not accepted: give SETTING=VALUE, several separated by `;`, of "
                "the settings that `fraud-filter config` prints, in lower case and without FRAUD_, or of "
                + ", ".join(SIZES)
            )
        if name in _OWN:
            raise UsageError(f"argument CHANGE: {part.strip()!r} is not accepted: experiments set {name} themselves")
        if name == CHECKPOINT and not Path(value).is_dir():
            raise UsageError(
                f"argument CHANGE: {part.strip()!r} is not accepted: give a directory that exists; each start makes "
                "one of its own in it, removed afterwards"
            )
        given[name] = value
    sizes = {name: _parse_size(name, given.pop(name)) for name in SIZES if name in given}
    checked = load(given)
    return Change(text.strip(), {name: getattr(checked, name) for name in given}, sizes)


def parse_changes(texts: Sequence[str]) -> list[Change]:
    """The mode as it is, and each change.

    Raises:
        UsageError: a change is not accepted, or is given twice.
    """
    changes = [Change(), *map(parse_change, texts)]
    names = [change.name for change in changes]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"argument CHANGE: {name!r} is given twice: name each once")
    return changes


def _parse_size(name: str, text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= SIZES[name]:
        raise UsageError(f"argument CHANGE: {name}={text} is not accepted: give a whole number from 1 to {SIZES[name]}")
    return int(text)
