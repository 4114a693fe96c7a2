"""What an audit found of one part of a run: the outcome that all results share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from rich.text import Text

from fraud_filter.audit.result import AuditResult
from lab.harness.tables import format_number


@dataclass(frozen=True)
class Audited:
    """An audit's counts of lost payments, and of duplicated and unexpected records; None is not audited, never zero.

    Payments that could not be judged, and those with other features than are right, are among the unexpected.
    `late_writes` are records of a filter that went on writing after another had taken over: each may be a duplicate.
    """

    lost: int | None = None
    duplicated: int | None = None
    unexpected: int | None = None
    late_writes: int | None = None

    @classmethod
    def of(cls, found: AuditResult, before: AuditResult | None = None) -> Audited:
        """The counts of an audit; with `before`, what has come since that earlier one."""
        now, then = (
            (one.lost, one.duplicated, one.unexpected + one.unjudged + _differing(one), one.late_writes)
            if one
            else (0, 0, 0, 0)
            for one in (found, before)
        )
        return cls(*(None if one is None else one - (other or 0) for one, other in zip(now, then, strict=True)))

    @classmethod
    def total(cls, several: Iterable[Audited]) -> Audited:
        """Their sums; a count that one of them lacks, or that none has, is not known."""
        counts = zip(*((one.lost, one.duplicated, one.unexpected, one.late_writes) for one in several), strict=True)
        return cls(*(None if None in each else sum(filter(None, each)) for each in counts))

    @property
    def ok(self) -> bool:
        """Nothing lost, nothing unexpected, and nothing decided twice but by late writes."""
        return self.lost == 0 and self.unexpected == 0 and (self.duplicated or 0) <= (self.late_writes or 0)

    def __str__(self) -> str:
        counts = {"lost": self.lost, "duplicated": self.duplicated, "unexpected": self.unexpected}
        late = {"by late writes": self.late_writes} if self.late_writes else {}
        return ", ".join(f"{format_number(count)} {name}" for name, count in (counts | late).items())


NOT_AUDITED = Audited()


def _differing(found: AuditResult) -> int:
    return found.features.differing if found.features else 0


def must_be_zero(count: int | None) -> Text:
    """A count in a terminal's table: red when it is not zero."""
    return Text(format_number(count), style="bold red" if count else "")


def to_plain(result: Any) -> dict[str, Any]:
    """A result for JSON, with the counts of its `audit` among the other fields."""
    plain: dict[str, Any] = {}
    for name, value in asdict(result).items():
        plain |= value if name == "audit" else {name: value}
    return plain
