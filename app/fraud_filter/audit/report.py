"""Shows the result of an audit in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from fraud_filter.audit.result import AuditResult, Detected, Gap
from fraud_filter.config import Settings
from fraud_filter.schema import HEADER_LABEL
from fraud_filter.text.console import PrintableConsole
from fraud_filter.text.terminal import printable

_ROWS = {
    "payments": "records read",
    "expected": "records that should be flagged",
    "written": "flagged records written",
    "rejected_expected": "records that should be rejected",
    "rejected": "records rejected",
    "former": "records about a former topic of this name, left out",
    "removed": "records removed from the topic before they were decided",
    "lost": "records lost (neither flagged nor rejected, as they should be)",
    "duplicated": "records that repeat another",
    "unexpected": "records that should not be there",
    "unjudged": "records that can't be judged: their decisions are not checked",
}
_FEATURE_ROWS = {
    "decisions": "flagged records whose features (and score) were compared",
    "differing": "of these, with others than they should have",
    "untold": "records whose features no one can tell, neither lost nor unexpected",
    "truncated": "records with a window that may be cut short",
}
#: What rules of a family look at.
_FAMILIES = {"rules": "single records", "velocity": "velocity", "model": "the model's score"}
_FAULTS = ("removed", "lost", "unexpected", "unjudged", "differing")


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
    labelled = [(name, label, getattr(result, name)) for name, label in _ROWS.items()]
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
