"""What an audit found, whether that is as it should be, and how a terminal shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from rich.console import Console
from rich.table import Table

from fraud_filter.config import Settings
from fraud_filter.rules.ruleset import RuleSet
from fraud_filter.schema import HEADER_LABEL, LEGITIMATE
from fraud_filter.text.console import PrintableConsole
from fraud_filter.text.terminal import printable

#: What rules of a family look at.
_FAMILIES = {"rules": "single records", "velocity": "velocity", "model": "the model's score"}


def _row(label: str, *, is_fault: bool = False, of_query: str | None = None) -> Any:
    """A figure of the table: what it counts, and whether more than none is wrong.

    `of_query`: what it counts of a query of the user's, None: the same, "": there is no such.
    """
    of_query = label if of_query is None else of_query
    return field(default=0, metadata={"label": label, "is_fault": is_fault, "of_query": of_query})


@dataclass(frozen=True, order=True)
class Finding:
    """One thing that is wrong: where the payment was read, and what is wrong with it."""

    partition: int
    offset: int
    reason: str


@dataclass(frozen=True, order=True)
class Gap:
    """Offsets from `start` to before `end` of a partition that are no longer there."""

    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        count = self.end - self.start
        return f"partition {self.partition} offsets {self.start} to {self.end - 1} ({count:,} payments)"


@dataclass(frozen=True)
class FeatureCounts:
    """Features are untold where the key came on several partitions, or a window reaches back to before what is
    retained; a window may be cut short where it holds as many payments as the state keeps.
    """

    decisions: int = _row("flagged and approved records whose features (and score) were compared")
    differing: int = _row("of these, with others than they should have", is_fault=True)
    untold: int = _row("records whose features no one can tell, neither lost nor unexpected")
    truncated: int = _row("records with a window that may be cut short")


class Detection:
    """Counts payments by label and by the family of the rules that match them: what these find of fraud. A payment
    without a label counts for no one.
    """

    def __init__(self, rules: RuleSet) -> None:
        self._families = {rule.name: rules.family(rule) for rule in rules.rules}
        #: By family, "" for all payments, and whether they are fraud.
        self._counts: Counter[tuple[str, bool]] = Counter()

    def see(self, headers: Iterable[tuple[str, bytes | None]] | None, matched: Iterable[str]) -> None:
        """Notes a valid payment: its headers, and the names of the rules that match it."""
        label = dict(headers or ()).get(HEADER_LABEL)
        if label is not None:
            known = self._families.keys() & set(matched)  # rules of another version may be none of these
            families = {"", *(self._families[name] for name in known)}
            self._counts.update((family, label != LEGITIMATE) for family in families)

    @property
    def fraud(self) -> int:
        """Payments with a label that says so."""
        return self._counts["", True]

    @property
    def labelled(self) -> int:
        """Payments with a label."""
        return self.fraud + self._counts["", False]

    @property
    def families(self) -> dict[str, dict[str, float | None]]:
        """By family that has a rule the `precision` and `recall`, as parts of 1; None of nothing."""
        return {
            family: {
                "precision": _part(
                    self._counts[family, True], self._counts[family, True] + self._counts[family, False]
                ),
                "recall": _part(self._counts[family, True], self.fraud),
            }
            for family in _FAMILIES
            if family in self._families.values()
        }


@dataclass(frozen=True)
class AuditResult:
    """What an audit found between the offsets `start` and `end` of each partition: counts of payments, or of records.

    `undecided` of the lost come after the last decision of their partition, so that a filter that lags may still have
    them to decide. `unexpected` are flagged, approved or rejected without cause, on another topic than its decision's,
    with other rules, key, fields, bytes or source.timestamp than the payment's, or without readable source headers.
    Approved are payments that match no rule, where decisions on all payments are written. `reject_reasons` counts the
    rightly rejected payments by the reason of their record. `gaps` are offsets that Kafka removed before they were
    decided, as far as a checkpoint tells of them; `missing` are those that were asked for and are no longer retained,
    decided or not. `features` is None where the rules have none, `detection` where nobody asked what rules find of
    labelled fraud. `versions` counts the written records by the version of the rules in their header, "" where there is
    none; `unknown` of them have one that is neither the given rules' nor in the checkpoint, and were judged by those
    that were due. `late_writes` are records that a writer appended after the first one of a later writer: each may
    repeat a decision. Of a query of the user's `expected` and `written` are rows; without its `expect` it is not known
    what is `expected` and `lost` (None), as `not_told` says.
    """

    start: dict[int, int]
    end: dict[int, int]
    took_s: float
    examples: dict[str, tuple[Finding, ...]]
    payments: int = _row("records read")
    expected: int | None = _row("records that should be flagged", of_query="rows that should be written")
    written: int = _row("flagged records written", of_query="rows written")
    approved_expected: int = _row("records that should be approved", of_query="")
    approved: int = _row("approved records written", of_query="")
    rejected_expected: int = _row("records that should be rejected", of_query="")
    rejected: int = _row("records rejected", of_query="")
    former: int = _row("records about a former topic of this name, left out")
    lost: int | None = _row("records lost (without what should be written)", is_fault=True)
    duplicated: int = _row("records that repeat another")
    unexpected: int = _row("records that should not be there", is_fault=True)
    unjudged: int = _row("records that can't be judged: what was written is not checked", is_fault=True)
    late_writes: int = _row("records that a writer wrote after a later one had begun")
    undecided: int = 0
    unknown: int = 0
    not_told: str = ""
    reject_reasons: dict[str, int] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    missing: tuple[Gap, ...] = ()
    features: FeatureCounts | None = None
    detection: Detection | None = None
    versions: dict[str, int] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """All that was asked for was audited, and that was something: nothing proves nothing."""
        return self.payments > 0 and not self.missing

    @property
    def ok(self) -> bool:
        """Nothing lost, nothing unexpected, all judged, nothing removed before it was decided."""
        return not (self.lost or self.unexpected or self.unjudged or self.gaps)

    @property
    def removed(self) -> int:
        """Payments that were removed before they were decided."""
        return sum(gap.end - gap.start for gap in self.gaps)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        told = asdict(self) | {"ok": self.ok, "complete": self.complete, "removed": self.removed}
        del told["detection"]
        return told | ({"detection": self.detection.families} if self.detection else {})


def _part(some: int, of: int) -> float | None:
    return round(some / of, 4) if of else None


def print_audit(result: AuditResult, settings: Settings, console: Console | None = None) -> None:
    """Prints the counts, the examples, and the verdict."""
    console = console or PrintableConsole()
    offsets = ", ".join(f"{partition}: {result.start[partition]} to {end}" for partition, end in result.end.items())
    if not result.payments:
        console.print(f"Nothing to audit: {settings.input_topic} holds no record at offsets {offsets}.", markup=False)
    if result.payments or not result.ok:
        title = f"Audit of {settings.input_topic}, offsets by partition {offsets}"
        console.print(_table(result, title, "of_query" if settings.query else "label"))
    if result.detection:
        console.print(_detection(result.detection))
    for line in _lines(result):
        console.print(line, markup=False)


def _table(result: AuditResult, title: str, labels: str) -> Table:
    table = Table(title=title)
    table.add_column("what")
    table.add_column("count", justify="right")
    parts: list[Any] = [result, *filter(None, [result.features])]
    figures = [(getattr(part, one.name), one.metadata) for part in parts for one in fields(part) if one.metadata]
    removed = {labels: "records removed from the topic before they were decided", "is_fault": True}
    for count, told in [*figures, (result.removed, removed)]:
        if told[labels] and count is not None:
            table.add_row(told[labels], f"{count:,}", style="bold red" if told["is_fault"] and count else "")
    return table


def _detection(detected: Detection) -> Table | str:
    if not detected.labelled:
        return f"No record has a header {HEADER_LABEL!r}: what the rules find of fraud is not known."
    table = Table(title=f"{detected.fraud:,} of {detected.labelled:,} payments with a label are fraud")
    table.add_column("rules over")
    for heading in ("precision", "recall"):
        table.add_column(heading, justify="right")
    for family, found in detected.families.items():
        table.add_row(_FAMILIES[family], *("-" if part is None else f"{part:.1%}" for part in found.values()))
    return table


def _lines(result: AuditResult) -> Iterator[str]:
    yield from (f"removed: {gap}" for gap in result.gaps)
    yield from (f"not audited, no longer retained: {gap}" for gap in result.missing)
    if len(result.versions) > 1 or result.unknown:
        counts = ", ".join(f"{version or 'none'}: {count:,}" for version, count in result.versions.items())
        yield f"records by the version of the rules that decided: {counts}"
    if result.unknown:
        yield (
            f"{result.unknown:,} records were decided by rules that are not known here, and judged by others; "
            "--checkpoint names where the filter has kept them"
        )
    for kind, findings in result.examples.items():
        for one in findings:
            yield f"{kind}: partition {one.partition}, offset {one.offset}: {printable(one.reason)}"
    if result.not_told:
        yield result.not_told
    yield f"{_verdict(result)} ({result.took_s:.1f} s)"
    if result.undecided:
        yield (
            f"{result.undecided:,} of the {result.lost:,} lost come after the last decision of their partition. Where "
            "the filter lags it may have them still to decide: audit again later, or with a longer --settle, or with "
            "--to up to the committed offsets."
        )


def _verdict(result: AuditResult) -> str:
    if not result.ok:
        return "the output is not what it should be"
    if result.complete:
        return "nothing unexpected" if result.not_told else "nothing lost, nothing unexpected"
    return f"not audited as asked{'' if result.payments else ', for there is nothing'}; --allow-gap takes that"
