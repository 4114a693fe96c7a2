"""Rules files of any size for experiments, made from the user's own: no payment is flagged that was not before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from fraud_filter.config import Settings
from fraud_filter.experiment.change import BLOCKED_IDS, RULE_COUNT
from fraud_filter.rules import Rule, load_rules
from fraud_filter.schema import load_schema

#: Looks at as many fields as the shipped rules do; no payment has such a category.
_MORE = "merchant_category = 'category-{number}' AND country <> card_country AND amount >= {number}"


def write_rules(settings: Settings, sizes: Mapping[str, int], folder: Path) -> Path:
    """Writes the rules with the `sizes` that a change asks for; returns the file, that of `settings` without any.

    Args:
        sizes: `rule_count`: the first of the rules, and made-up ones after them; `blocked_ids`: ids on each block
            list, made-up ones after its own.
        folder: where the files go.

    Raises:
        UsageError: the rules of `settings` are not accepted.
    """
    if not sizes.keys() & {RULE_COUNT, BLOCKED_IDS}:
        return settings.rules
    rules = load_rules(settings.rules, load_schema(settings.payment_schema)).rules
    count = sizes.get(RULE_COUNT, len(rules))
    made_up = (Rule(f"rule-{number}", 0, when=_MORE.format(number=number)) for number in range(len(rules), count))
    folder.mkdir(parents=True)
    entries = [_entry(_longer(rule, sizes.get(BLOCKED_IDS, 0)), folder) for rule in (*rules[:count], *made_up)]
    file = folder / settings.rules.name
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
