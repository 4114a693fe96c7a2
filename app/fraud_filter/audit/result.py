"""What an audit found, whether that is as it should be, and how a terminal shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from fraud_filter.config import Settings
from fraud_filter.rules.ruleset import FAMILIES, RuleSet
from fraud_filter.schema import HEADER_LABEL, LEGITIMATE
from fraud_filter.text.console import PrintableConsole
from fraud_filter.text.terminal import printable

_ROWS = {
    "payments": "records read",
    "expected": "records that should be flagged",
    "written": "flagged records written",
    "approved_expected": "records that should be approved",
    "approved": "approved records written",
    "rejected_expected": "records that should be rejected",
    "rejected": "records rejected",
    "former": "records about a former topic of this name, left out",
    "removed": "records removed from the topic before they were decided",
    "lost": "records lost (without the decision that should be written)",
    "duplicated": "records that repeat another",
    "unexpected": "records that should not be there",
    "unjudged": "records that can't be judged: their decisions are not checked",
}
_FEATURE_ROWS = {
    "decisions": "flagged and approved records whose features (and score) were compared",
    "differing": "of these, with others than they should have",
    "untold": "records whose features no one can tell, neither lost nor unexpected",
    "truncated": "records with a window that may be cut short",
}
#: What rules of a family look at.
_FAMILIES = {"rules": "single records", "velocity": "velocity", "model": "the model's score"}
_FAULTS = ("removed", "lost", "unexpected", "unjudged", "differing")


class Finding(NamedTuple):
    """One thing that is wrong: where the payment was read, and what is wrong with it."""

    partition: int
    offset: int
    reason: str


class Gap(NamedTuple):
    """Offsets from `start` to before `end` of a partition that are no longer there."""

    partition: int
    start: int
    end: int


class FeatureCounts(NamedTuple):
    """`decisions` are flagged and approved records whose features were compared, `differing` of them have wrong ones.

    `untold` payments have features that no one can tell: their key came on several partitions, or a window reaches back
    to before what is retained. They are neither lost nor unexpected. `truncated` payments have a window that holds as
    many payments as the state keeps.
    """

    decisions: int
    differing: int
    untold: int
    truncated: int


class Found(NamedTuple):
    """How much of what rules match is fraud, and how much of the fraud they match, as parts of 1; None of nothing."""

    precision: float | None
    recall: float | None


class Detected(NamedTuple):
    """Counts of payments with a label, and what rules of each family find: of payments, velocity, a model."""

    labelled: int
    fraud: int
    families: dict[str, Found]


class Detection:
    """Counts payments by label and by the rules that match them. A payment without a label counts for no one."""

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

    def result(self) -> Detected:
        """The figures of the families that have a rule."""
        fraud = self._counts["", True]
        found: dict[str, Found] = {}
        for family in FAMILIES:
            if family in self._families.values():
                hits = self._counts[family, True]
                found[family] = Found(_part(hits, hits + self._counts[family, False]), _part(hits, fraud))
        return Detected(fraud + self._counts["", False], fraud, found)


@dataclass(frozen=True)
class AuditResult:
    """What an audit found. All are counts of payments unless they say records.

    `payments` were read; `expected` of them should be flagged and `rejected_expected` rejected. `written` flagged
    records belong to them, copies too; `approved_expected` and `approved` are the same where decisions on all payments
    are written. `rejected` payments have a rejected record. `lost` should have been flagged, approved or rejected and
    were not; `undecided` of these come after the last decision of their partition, so that a filter that lags may still
    have them to decide. `duplicated` counts extra copies (records). `unexpected` counts records that should not be
    there: flagged, approved or rejected without cause, on another topic than its decision's, with other rules, key,
    fields, bytes or source.timestamp than the payment's, or without readable source headers. `unjudged` payments made
    the oracle fail: nothing is known of what was written about them. `former` counts records about payments of a former
    topic of the same name, which are left out. `reject_reasons` counts the rightly rejected payments by the reason of
    their record. `gaps` are offsets that Kafka removed before they were decided, as far as a checkpoint tells of them;
    `missing` are those that were asked for and are no longer retained, decided or not. `features` is None where the
    rules have none, `detection` where nobody asked what rules find of labelled fraud. `versions` counts the written
    records by the version of the rules in their header, "" where there is none; `unknown` of them have one that is
    neither the given rules' nor in the checkpoint, and were judged by those that were due.
    """

    start: dict[int, int]
    end: dict[int, int]
    payments: int
    expected: int
    written: int
    lost: int
    undecided: int
    duplicated: int
    unexpected: int
    rejected: int
    rejected_expected: int
    reject_reasons: dict[str, int]
    examples: dict[str, tuple[Finding, ...]]
    took_s: float
    gaps: tuple[Gap, ...] = ()
    former: int = 0
    missing: tuple[Gap, ...] = ()
    features: FeatureCounts | None = None
    detection: Detected | None = None
    versions: dict[str, int] = field(default_factory=dict)
    unknown: int = 0
    unjudged: int = 0
    approved: int = 0
    approved_expected: int = 0

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
        told = {name: value for name, value in vars(self).items() if name not in ("examples", "detection")}
        examples = {kind: [finding._asdict() for finding in found] for kind, found in self.examples.items()}
        gaps = {name: [gap._asdict() for gap in getattr(self, name)] for name in ("gaps", "missing")}
        told["features"] = self.features._asdict() if self.features else None
        told |= {"detection": plain(self.detection)} if self.detection else {}
        added = {"complete": self.complete, "removed": self.removed}
        return {"ok": self.ok, **told, **added, **gaps, "examples": examples}


def plain(detected: Detected | None) -> dict[str, Any] | None:
    """For JSON: precision and recall by family."""
    return detected and {family: found._asdict() for family, found in detected.families.items()}


def _part(some: int, of: int) -> float | None:
    return round(some / of, 4) if of else None


def print_audit(result: AuditResult, settings: Settings, console: Console | None = None) -> None:
    """Prints the counts, the examples, and the verdict."""
    console = console or PrintableConsole()
    offsets = ", ".join(f"{partition}: {result.start[partition]} to {end}" for partition, end in result.end.items())
    if not result.payments:
        console.print(f"Nothing to audit: {settings.input_topic} holds no record at offsets {offsets}.", markup=False)
    if result.payments or not result.ok:
        console.print(_table(result, f"Audit of {settings.input_topic}, offsets by partition {offsets}"))
    if result.detection:
        console.print(_detection(result.detection))
    for line in _lines(result):
        console.print(line, markup=False)


def _table(result: AuditResult, title: str) -> Table:
    table = Table(title=title)
    table.add_column("what")
    table.add_column("count", justify="right")
    counts = {name: getattr(result, name) for name in _ROWS}
    if not (result.approved or result.approved_expected):
        del counts["approved"], counts["approved_expected"]
    labelled = [(name, _ROWS[name], count) for name, count in counts.items()]
    if result.features:
        labelled += [(name, label, getattr(result.features, name)) for name, label in _FEATURE_ROWS.items()]
    for name, label, count in labelled:
        table.add_row(label, f"{count:,}", style="bold red" if name in _FAULTS and count else "")
    return table


def _detection(detected: Detected) -> Table | str:
    if not detected.labelled:
        return f"No record has a header {HEADER_LABEL!r}: what the rules find of fraud is not known."
    table = Table(title=f"{detected.fraud:,} of {detected.labelled:,} payments with a label are fraud")
    table.add_column("rules over")
    for heading in ("precision", "recall"):
        table.add_column(heading, justify="right")
    for family, found in detected.families.items():
        table.add_row(_FAMILIES[family], *("-" if part is None else f"{part:.1%}" for part in found))
    return table


def _lines(result: AuditResult) -> Iterator[str]:
    yield from (f"removed: {_where(gap)}" for gap in result.gaps)
    yield from (f"not audited, no longer retained: {_where(gap)}" for gap in result.missing)
    if len(result.versions) > 1 or result.unknown:
        counts = ", ".join(f"{version or 'none'}: {count:,}" for version, count in result.versions.items())
        yield f"records by the version of the rules that decided: {counts}"
    if result.unknown:
        yield (
            f"{result.unknown:,} records were decided by rules that are not known here, and judged by others; "
            "--checkpoint names where the filter has kept them"
        )
    for kind, findings in result.examples.items():
        for partition, offset, reason in findings:
            yield f"{kind}: partition {partition}, offset {offset}: {printable(reason)}"
    yield f"{_verdict(result)} ({result.took_s:.1f} s)"
    if result.undecided:
        yield (
            f"{result.undecided:,} of the {result.lost:,} lost come after the last decision of their partition. Where "
            "the filter lags it may have them still to decide: audit again later, or with a longer --settle, or with "
            "--to up to the committed offsets."
        )


def _where(gap: Gap) -> str:
    return f"partition {gap.partition} offsets {gap.start} to {gap.end - 1} ({gap.end - gap.start:,} payments)"


def _verdict(result: AuditResult) -> str:
    if not result.ok:
        return "the output is not what it should be"
    if result.complete:
        return "nothing lost, nothing unexpected"
    return f"not audited as asked{'' if result.payments else ', for there is nothing'}; --allow-gap takes that"
