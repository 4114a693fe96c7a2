"""What a contender's name may change: `linger_ms=5`, `partitions=8` or `commit.interval.ms=10`, joined by `;`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fraud_filter.config import Settings, load
from fraud_filter.errors import UsageError
from lab.bench.plan import MAX_PARTITIONS

#: Of the input topic: what can be changed besides settings.
PARTITIONS = "partitions"
#: The directory that takes the checkpoint of each start.
CHECKPOINT = "checkpoint"
#: Settings that the bench needs for itself: a change of theirs would do nothing, or harm.
_OWN = {
    "mode",
    "source",
    "sink",
    "kafka_bootstrap_servers",
    "kafka_security_protocol",
    "input_topic",
    "flagged_topic",
    "approved_topic",
    "rejected_topic",
    "starting_offsets",
    "metrics_port",
}
#: Settings by which is decided: generator and audit have to know them, too.
_DECIDES = (
    "rules",
    "payment_schema",
    "record_format",
    "time_unit",
    "max_record_bytes",
    "velocity_payments",
    "emit",
    "topics_file",
)


@dataclass(frozen=True)
class Change:
    """Settings by name, checked: those by which is `decided`, and the `others`, which the filter alone gets.

    `partitions` of the input topic, 0 for the usual ones; `checkpoints` is the directory that is to take checkpoints,
    None for the usual one.
    """

    decided: Mapping[str, Any]
    others: Mapping[str, Any]
    partitions: int = 0
    checkpoints: Path | None = None


def parse_options(text: str) -> dict[str, str]:
    """Options of an engine, by the names that it gives them, such as `commit.interval.ms=10`.

    Raises:
        UsageError: one is no option.
    """
    given = {}
    for part in text.split(";"):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals or "." not in name:
            raise UsageError(
                f"argument --contenders: {part.strip()!r} is not accepted: give OPTION=VALUE, several separated by "
                "`;`, of the engine's own options, such as commit.interval.ms=10"
            )
        given[name] = value
    return given


def parse_change(text: str) -> Change:
    """The change in words such as `linger_ms=5;max_restarts=0` or `spark_conf={"spark.cores.max": "4"}`.

    Raises:
        UsageError: no such setting, one that the bench needs for itself, or a value that is not accepted.
    """
    given: dict[str, str] = {}
    for part in text.split(";"):
        name, equals, value = (word.strip() for word in part.partition("="))
        refused = f"argument --contenders: {part.strip()!r} is not accepted"
        if not equals or name not in {*Settings.model_fields, PARTITIONS}:
            raise UsageError(
                f"{refused}: give SETTING=VALUE, several separated by `;`, of the settings that `fraud-filter config` "
                f"prints, in lower case and without FRAUD_, or {PARTITIONS}=N"
            )
        if name in _OWN:
            raise UsageError(f"{refused}: the bench sets {name} itself")
        if name == PARTITIONS and not (value.isdecimal() and 1 <= int(value) <= MAX_PARTITIONS):
            raise UsageError(f"{refused}: give a whole number from 1 to {MAX_PARTITIONS}")
        if name == CHECKPOINT and not Path(value).is_dir():
            raise UsageError(
                f"{refused}: give a directory that exists; each start makes one of its own in it, removed afterwards"
            )
        given[name] = value
    partitions = int(given.pop(PARTITIONS, 0))
    checked = load(given)
    place = Path(given.pop(CHECKPOINT)).resolve() if CHECKPOINT in given else None
    settings = {name: getattr(checked, name) for name in given}
    return Change(
        decided={name: value for name, value in settings.items() if name in _DECIDES},
        others={name: value for name, value in settings.items() if name not in _DECIDES},
        partitions=partitions,
        checkpoints=place,
    )
