"""What a contender is started with, and who watches it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fraud_filter.config import Settings
from fraud_filter.rules.ruleset import load_rules
from fraud_filter.schema import load_schema
from fraud_filter.spark.session import COLLECTOR, EARLY_COMPILER
from lab.harness.embedded_stack import EmbeddedStack

#: Java's, for engines beside Spark: compiler and collector as the filter has them, and the heap of Spark's default.
JAVA_OPTIONS = f"{EARLY_COMPILER} {COLLECTOR} -Xmx1g"
#: What a start goes through, in this order.
Phase = Literal["starting", "warming up", "measuring", "draining", "auditing"]
#: Told each phase when it begins, and its seconds; 0 where they are not known.
Enter = Callable[[Phase, float], None]
#: Follows a start of the contender of this name on the topics of the settings, from before it is started.
Watch = Callable[[str, Settings], AbstractContextManager[Enter]]


@dataclass(frozen=True)
class Launch:
    """What a contender is started with: a stack whose settings name the topics, and `name`, of this start.

    `start` are offsets of the input topic by partition, `folder` is empty and takes the checkpoint, `own` are settings
    of the contender alone.
    """

    stack: EmbeddedStack
    start: Mapping[int, int]
    name: str
    folder: Path
    own: Mapping[str, Any] = field(default_factory=dict)

    @property
    def plan(self) -> Path:
        """The file that takes what an engine makes of its query, as it explains it."""
        return self.stack.workspace.path / f"{self.name}.plan"


def unwatched(_: str, __: Settings) -> AbstractContextManager[Enter]:
    """Nobody looks, so that nothing costs time that the contender could have."""
    return nullcontext(lambda _phase, _seconds: None)


def shipped() -> dict[str, Any]:
    """The default settings that the filters of other engines have: what they read, decide by, and write."""
    fields, names = Settings.model_fields, ("rules", "payment_schema", "record_format", "emit")
    return {"query": "", **{name: fields[name].get_default(call_default_factory=True) for name in names}}


def lacks_default(settings: Settings) -> str:
    """Why another engine's filter can't do what the settings say; empty where it can."""
    other = [name for name, default in shipped().items() if getattr(settings, name) != default]
    return f"it has the default {other[0]} alone" if other else ""


def blocked_ids(settings: Settings) -> dict[str, list[str]]:
    """The ids of the block lists of the rules, by the field that they are of."""
    rules = load_rules(settings.rules, load_schema(settings.payment_schema)).rules
    return {str(rule.column): sorted(rule.ids) for rule in rules if rule.when is None}
