"""Shows the result of an audit in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from fraud_filter.audit.gaps import Gap
from fraud_filter.audit.result import AuditResult
from fraud_filter.config import Settings
from fraud_filter.text.console import PrintableConsole
from fraud_filter.text.terminal import printable

_ROWS = {
    "payments": "payments read",
    "expected": "payments that should be flagged",
    "written": "flagged records written",
    "rejected_expected": "payments that should be rejected",
    "rejected": "payments rejected",
    "former": "records about a former topic of this name, left out",
    "removed": "payments removed from the topic before they were decided",
    "lost": "payments lost (neither flagged nor rejected, as they should be)",
    "duplicated": "records that repeat another",
    "unexpected": "records that should not be there",
}
_FAULTS = ("removed", "lost", "unexpected")


def print_audit(result: AuditResult, settings: Settings, console: Console | None = None) -> None:
    """Prints the counts, the examples, and the verdict."""
    console = console or PrintableConsole()
    offsets = ", ".join(f"{partition}: {result.start[partition]} to {end}" for partition, end in result.end.items())
    if not result.payments:
        console.print(f"Nothing to audit: {settings.input_topic} holds no payment at offsets {offsets}.", markup=False)
    if result.payments or not result.ok:
        console.print(_table(result, f"Audit of {settings.input_topic}, offsets by partition {offsets}"))
    for gap in result.gaps:
        console.print(f"removed: {_where(gap)}", markup=False)
    for gap in result.missing:
        console.print(f"not audited, no longer retained: {_where(gap)}", markup=False)
    for kind, findings in result.examples.items():
        for finding in findings:
            where = f"partition {finding.partition}, offset {finding.offset}"
            console.print(f"{kind}: {where}: {printable(finding.reason)}", markup=False)
    console.print(f"{_verdict(result)} ({result.took_s:.1f} s)", markup=False)
    if result.undecided:
        console.print(
            f"{result.undecided:,} of the {result.lost:,} lost come after the last decision of their partition. Where "
            "the filter lags it may have them still to decide: audit again later, or with a longer --settle, or with "
            "--to up to the committed offsets.",
            markup=False,
        )


def _table(result: AuditResult, title: str) -> Table:
    table = Table(title=title)
    table.add_column("what")
    table.add_column("count", justify="right")
    for name, label in _ROWS.items():
        count = getattr(result, name)
        table.add_row(label, f"{count:,}", style="bold red" if name in _FAULTS and count else "")
    return table


def _where(gap: Gap) -> str:
    return f"partition {gap.partition} offsets {gap.start} to {gap.end - 1} ({gap.end - gap.start:,} payments)"


def _verdict(result: AuditResult) -> str:
    if not result.ok:
        return "the output is not what it should be"
    if result.complete:
        return "nothing lost, nothing unexpected"
    return f"not audited as asked{'' if result.payments else ', for there is nothing'}; --allow-gap takes that"
