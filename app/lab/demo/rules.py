"""Which rules the demo runs, and what they found of the labelled fraud."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table

from fraud_filter.audit.result import plain
from fraud_filter.config import Settings
from fraud_filter.home import HOME
from fraud_filter.modes import MODES
from fraud_filter.rules.ruleset import read_rules
from fraud_filter.schema import load_schema
from lab.bench.plan import BenchPlan
from lab.demo.result import ModeResult

#: The shipped rules that know what a card did before.
VELOCITY_RULES = HOME / "app/rules-velocity.yml"
FAMILIES = {"rules": "single payments", "velocity": "velocity", "model": "the model's score"}


def with_velocity(settings: Settings) -> Settings:
    """The settings with the shipped rules that use velocity, where the user has named no rules."""
    if "rules" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"rules": VELOCITY_RULES, "features_unsupported": "skip"})


def describe_skipped(plan: BenchPlan, settings: Settings) -> str:
    """Which modes leave out which rules; empty where they run all, or refuse them themselves."""
    rules, _ = read_rules(settings.rules, load_schema(settings.payment_schema))  # what is wrong each mode tells itself
    skipped = [rule.name for rule in rules.rules if rules.uses_features(rule)]
    without = [mode.name for mode in MODES.values() if mode.name in plan.contenders and mode.lacks_features]
    if not skipped or not without or settings.features_unsupported != "skip":
        return ""
    return f"{', '.join(without)}: without the rules over velocity ({', '.join(skipped)}), which need real-time mode"


def detection(results: Sequence[ModeResult]) -> dict[str, Any] | None:
    """Precision and recall in the mode that ran most families of rules; None where nothing was labelled."""
    told = [found for result in results if (found := plain(result.detection))]
    return max(told, key=len, default=None)


def detection_table(results: Sequence[ModeResult]) -> Table | None:
    """What the rules of each mode found of the labelled fraud; None where nothing was labelled."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("mode", no_wrap=True)
    for heading in ("fraud", "rules over", "precision", "recall"):
        table.add_column(heading, justify="left" if heading == "rules over" else "right")
    for result in results:
        if result.detection and result.detection.labelled:
            for family, found in result.detection.families.items():
                parts = ("-" if part is None else f"{part:.0%}" for part in found)
                table.add_row(result.mode, str(result.detection.fraud), FAMILIES[family], *parts)
    table.caption = "Labelled fraud: single payments against what the card did before."
    table.caption_justify = "left"
    return table if table.row_count else None
