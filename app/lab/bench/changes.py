"""What a contender's name may change: `linger_ms=5`, `rule_count=200` or `commit.interval.ms=10`, joined by `;`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from fraud_filter.config import Settings, load
from fraud_filter.errors import UsageError
from fraud_filter.rules.ruleset import Rule, load_rules
from fraud_filter.schema import load_schema
from lab.bench.plan import MAX_PARTITIONS

PARTITIONS, RULE_COUNT, BLOCKED_IDS = "partitions", "rule_count", "blocked_ids"
#: What can be changed besides settings, and the most of it: partitions of the input topic, rules, ids on block lists.
SIZES = {PARTITIONS: MAX_PARTITIONS, RULE_COUNT: 1000, BLOCKED_IDS: 5_000_000}
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
_DECIDES = ("rules", "payment_schema", "record_format", "time_unit", "max_record_bytes", "velocity_payments", "emit")


@dataclass(frozen=True)
class Change:
    """Settings by name, checked: those by which is `decided`, and the `others`, which the filter alone gets.

    `sizes` are those of `SIZES`; `checkpoints` is the directory that is to take checkpoints, None for the usual one.
    """

    decided: Mapping[str, Any]
    others: Mapping[str, Any]
    sizes: Mapping[str, int]
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
        if not equals or name not in {*Settings.model_fields, *SIZES}:
            raise UsageError(
                f"{refused}: give SETTING=VALUE, several separated by `;`, of the settings that `fraud-filter config` "
                f"prints, in lower case and without FRAUD_, or of {', '.join(SIZES)}"
            )
        if name in _OWN:
            raise UsageError(f"{refused}: the bench sets {name} itself")
        if name in SIZES and not (value.isdecimal() and 1 <= int(value) <= SIZES[name]):
            raise UsageError(f"{refused}: give a whole number from 1 to {SIZES[name]}")
        if name == CHECKPOINT and not Path(value).is_dir():
            raise UsageError(
                f"{refused}: give a directory that exists; each start makes one of its own in it, removed afterwards"
            )
        given[name] = value
    sizes = {name: int(given.pop(name)) for name in SIZES if name in given}
    checked = load(given)
    place = Path(given.pop(CHECKPOINT)).resolve() if CHECKPOINT in given else None
    settings = {name: getattr(checked, name) for name in given}
    return Change(
        decided={name: value for name, value in settings.items() if name in _DECIDES},
        others={name: value for name, value in settings.items() if name not in _DECIDES},
        sizes=sizes,
        checkpoints=place,
    )


#: Looks at as many fields as the shipped rules do; no payment has such a category.
_MORE = "merchant_category = 'category-{number}' AND country <> card_country AND amount >= {number}"


def write_rules(settings: Settings, sizes: Mapping[str, int], folder: Path) -> Path:
    """Writes the rules with the `sizes` that a change asks for, once; returns the file, that of `settings` without any.

    Args:
        sizes: `rule_count`: the rules, and made-up ones after them that no payment matches; `blocked_ids`: ids on
            each block list, made-up ones after its own, from all of which the generator takes.
        folder: where the files go.

    Raises:
        UsageError: the rules of `settings` are not accepted, or `rule_count` is less than there are.
    """
    if not sizes.keys() & {RULE_COUNT, BLOCKED_IDS}:
        return settings.rules
    file = folder / settings.rules.name
    if file.exists():
        return file
    rules = load_rules(settings.rules, load_schema(settings.payment_schema)).rules
    count = sizes.get(RULE_COUNT, len(rules))
    if count < len(rules):
        raise UsageError(
            f"argument --contenders: {RULE_COUNT}={count} is not accepted: give {len(rules)} or more. There are as "
            f"many in {settings.rules}, and without one of them less would be flagged, and written"
        )
    made_up = (Rule(f"rule-{number}", 0, when=_MORE.format(number=number)) for number in range(len(rules), count))
    folder.mkdir(parents=True, exist_ok=True)
    entries = [_entry(_longer(rule, sizes.get(BLOCKED_IDS, 0)), folder) for rule in (*rules, *made_up)]
    file.write_text(yaml.safe_dump({"rules": entries}, sort_keys=False), encoding="utf-8")
    return file


def _longer(rule: Rule, count: int) -> Rule:
    more = tuple(f"blocked-{number:07}" for number in range(len(rule.ids), count)) if rule.ids else ()
    return replace(rule, ids=(*rule.ids, *more))


def _entry(rule: Rule, folder: Path) -> dict[str, Any]:
    if rule.when is not None:
        return {"name": rule.name, "when": rule.when}
    list_file = folder / f"{rule.name}.txt"
    list_file.write_text("".join(f"{one}\n" for one in rule.ids), encoding="utf-8")
    return {"name": rule.name, "blocked": {"column": rule.column, "file": list_file.name}}
