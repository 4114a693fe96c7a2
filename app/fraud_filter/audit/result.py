"""What an audit found, and whether that is as it should be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fraud_filter.audit.detection import Detected, plain
from fraud_filter.audit.gaps import Gap
from fraud_filter.audit.ledger import Finding


class FeatureCounts(NamedTuple):
    """`decisions` are flagged records whose features were compared, `differing` those with others than are right.

    `untold` payments have features that no one can tell: their key came on several partitions, or a window reaches back
    to before what is retained. They are neither lost nor unexpected. `truncated` payments have a window that holds as
    many payments as the state keeps.
    """

    decisions: int
    differing: int
    untold: int
    truncated: int


@dataclass(frozen=True)
class AuditResult:
    """What an audit found. All are counts of payments unless they say records.

    `payments` were read; `expected` of them should be flagged and `rejected_expected` rejected. `written` flagged
    records belong to them, copies too; `rejected` payments have a rejected record. `lost` should have been flagged or
    rejected and were not; `undecided` of these come after the last decision of their partition, so that a filter that
    lags may still have them to decide. `duplicated` counts extra copies (records). `unexpected` counts records that
    should not be there: flagged or rejected without cause, with other rules, key, fields or bytes than the payment's,
    or source.timestamp than the payment's, or without readable source headers. `former` counts records about payments
    of a former topic of the same name, which are left out. `reject_reasons` counts the expected rejected records by
    their own reason. `gaps` are offsets that Kafka removed before they were decided, as far as a checkpoint tells of
    them; `missing` are those that were asked for and are no longer retained, decided or not. `features`
    is None where the rules have none. `detection` tells what rules find of labelled fraud; None where nobody asked.
    `versions` counts the written records by the version of the rules in their
    header, "" where there is none; `unknown` of them have one that is neither the given rules' nor in the checkpoint,
    and were judged by those that were due.
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

    @property
    def complete(self) -> bool:
        """All that was asked for was audited, and that was something: nothing proves nothing."""
        return self.payments > 0 and not self.missing

    @property
    def ok(self) -> bool:
        """Nothing lost, nothing unexpected, nothing removed before it was decided."""
        return self.lost == 0 and self.unexpected == 0 and not self.gaps

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
