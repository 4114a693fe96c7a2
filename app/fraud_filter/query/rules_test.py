"""`rules test`: runs the filter's own expressions over a file of payments and tells what becomes of each."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fraud_filter.model.saved import SavedModel
from fraud_filter.query import decide as query
from fraud_filter.rules.ruleset import RuleSet
from fraud_filter.schema import PaymentSchema
from fraud_filter.text.terminal import printable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Verdict:
    """What the filter would do with one line: `outcome` is flagged, passed or rejected; `line` counts from 1."""

    line: int
    payment: str
    outcome: str
    rules: tuple[str, ...]
    reason: str | None

    def as_dict(self) -> dict[str, Any]:
        """The verdict for JSON."""
        return asdict(self)


def try_rules(
    spark: SparkSession, file: str, schema: PaymentSchema, rules: RuleSet, model: SavedModel | None = None
) -> Iterator[Verdict]:
    """Judges each line of a text file (plain or gzip) by the rules that use no features: a file has no append times.

    `model` is that of the rules. `Verdict.payment` is the schema's first required field.
    """
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    lines = spark.read.text(file).select(F.col("value").cast("binary").alias("_value"))
    label = schema.required[0] if schema.required else schema.fields[0].name
    left = rules.without_features()
    judged = query.judge(lines, schema, left, model=model if left.model else None).select(
        F.col(f"`{label}`").cast("string"), "_reason", "_rules"
    )
    for number, row in enumerate(judged.toLocalIterator(), start=1):
        payment, reason, matched = row
        outcome = "rejected" if reason else "flagged" if matched else "passed"
        yield Verdict(number, payment or "", outcome, () if reason else tuple(matched), reason)


def as_table(verdicts: Iterator[Verdict]) -> str:
    """A table of the verdicts, and how many payments each rule matches."""
    from rich.table import Table

    from fraud_filter.text.console import PrintableConsole

    table = Table("line", "payment", "outcome", "rules or reason")
    outcomes: Counter[str] = Counter()
    matches: Counter[str] = Counter()
    for verdict in verdicts:
        outcomes[verdict.outcome] += 1
        matches.update(verdict.rules)
        why = verdict.reason or ", ".join(verdict.rules)
        table.add_row(str(verdict.line), printable(verdict.payment), verdict.outcome, printable(why))
    buffer = io.StringIO()
    console = PrintableConsole(file=buffer, width=120, markup=False, emoji=False)  # `[/x]` is an id like another
    console.print(table)
    console.print(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())) or "no records")
    if matches:
        console.print("matched by rule: " + ", ".join(f"{rule} {count}" for rule, count in matches.most_common()))
    return buffer.getvalue()
