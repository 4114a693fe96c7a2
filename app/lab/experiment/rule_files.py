"""Rules files of any size for experiments, made from the user's own: they flag as many payments as those do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from fraud_filter.rules.ruleset import Rule, load_rules
from fraud_filter.schema import load_schema
from lab.experiment.change import BLOCKED_IDS, RULE_COUNT

#: Looks at as many fields as the shipped rules do; no payment has such a category.
_MORE = "merchant_category = 'category-{number}' AND country <> card_country AND amount >= {number}"


def write_rules(settings: Settings, sizes: Mapping[str, int], folder: Path) -> Path:
    """Writes the rules with the `sizes` that a change asks for; returns the file, that of `settings` without any.

    Args:
        sizes: `rule_count`: the rules, and made-up ones after them that no payment matches; `blocked_ids`: ids on
            each block list, made-up ones after its own, from all of which the generator takes.
        folder: where the files go.

    Raises:
        UsageError: the rules of `settings` are not accepted.
    """
    if not sizes.keys() & {RULE_COUNT, BLOCKED_IDS}:
        return settings.rules
    rules = _load(settings)
    count = sizes.get(RULE_COUNT, len(rules))
    made_up = (Rule(f"rule-{number}", 0, when=_MORE.format(number=number)) for number in range(len(rules), count))
    folder.mkdir(parents=True)
    entries = [_entry(_longer(rule, sizes.get(BLOCKED_IDS, 0)), folder) for rule in (*rules, *made_up)]
    file = folder / settings.rules.name
    file.write_text(yaml.safe_dump({"rules": entries}, sort_keys=False), encoding="utf-8")
    return file


def check_sizes(settings: Settings, sizes: Mapping[str, int]) -> None:
    """Refuses less rules than there are.

    Raises:
        UsageError: `rule_count` is smaller than the rules of `settings`, or these are not accepted.
    """
    if RULE_COUNT not in sizes:
        return
    least = len(_load(settings))
    if sizes[RULE_COUNT] < least:
        raise UsageError(
            f"argument CHANGE: {RULE_COUNT}={sizes[RULE_COUNT]} is not accepted: give {least} or more. There are as "
            f"many in {settings.rules}, and without one of them less would be flagged, and written"
        )


def _load(settings: Settings) -> Sequence[Rule]:
    return load_rules(settings.rules, load_schema(settings.payment_schema)).rules


def _longer(rule: Rule, count: int) -> Rule:
    more = tuple(f"blocked-{number:07}" for number in range(len(rule.ids), count)) if rule.ids else ()
    return replace(rule, ids=(*rule.ids, *more))


def _entry(rule: Rule, folder: Path) -> dict[str, Any]:
    if rule.when is not None:
        return {"name": rule.name, "when": rule.when}
    list_file = folder / f"{rule.name}.txt"
    list_file.write_text("".join(f"{one}\n" for one in rule.ids), encoding="utf-8")
    return {"name": rule.name, "blocked": {"column": rule.column, "file": list_file.name}}
