"""What a bench has measured: one `RateResult` for each contender, round and rate, and one `StartResult` a start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lab.bench.plan import DRIFT
from lab.bench.statistics import Counts
from lab.harness.outcome import NOT_AUDITED, Audited

#: A contender keeps up if it gets at least this share of what the generator is to send, decides as much of what it
#: gets in the same time, and 99 of 100 payments wait no longer than the limit. Micro-batches take a third of a second.
KEPT_SHARE = 0.99
MOST_P99_MS = 1000.0
#: A start is disturbed if others took more of the processor time that was wanted while measuring; on a quiet machine
#: it is less than a hundredth.
MOST_STOLEN = 0.05


@dataclass(frozen=True)
class RateResult:
    """One contender at one rate in one round. None means not measured, never zero.

    `rate` and `kept_rate` are payments per second, planned and on the input topic. `payments` and `decisions` (flagged
    or rejected) are those of the measured seconds, by due time. `due` has mean, percentiles and maximum of the latency
    from the due time to the decision's append, `due_20us` what they are from: `statistics.Counts`. `append_mean_ms` is
    the mean from the payment's append. `cpu_s` are processor seconds in the measured seconds, by program;
    `stolen_share` is what a hypervisor gave to others of the processor time that was wanted then, a part of 1.
    `decided_share` is how many payments were decided in a measured second, of those that were due in it, a part of 1.
    `lag` is the number of decisions that were still to come when the last payment was appended. `batch_ends_ms` are the
    longest waits around the ends of the contender's batches, where these are seconds apart. `gap_s` is the longest time
    without a decision. It and `audit` are of all payments at this rate,
    settling included, as are `flagged`, `rejected`, `features` (how many decisions' were compared, how many differed;
    None where the rules have none) and `detection` (precision and recall by family of rules; None where nothing was
    labelled).
    """

    rate: float
    kept_rate: float | None = None
    payments: int = 0
    decisions: int = 0
    due: Mapping[str, float | None] = field(default_factory=dict)
    due_20us: Counts = field(default_factory=dict)
    append_mean_ms: float | None = None
    cpu_s: Mapping[str, float | None] = field(default_factory=dict)
    rss_mib: float | None = None
    stolen_share: float | None = None
    decided_share: float | None = None
    lag: int = 0
    batch_ends_ms: Sequence[float] = ()
    gap_s: float = 0
    audit: Audited = NOT_AUDITED
    flagged: int | None = None
    rejected: int | None = None
    features: Mapping[str, int] | None = None
    detection: Mapping[str, Mapping[str, float | None]] | None = None

    def per_1000(self, program: str) -> float | None:
        """Processor seconds of a program for a thousand payments."""
        cpu_s = self.cpu_s.get(program)
        return None if cpu_s is None or not self.payments else cpu_s / self.payments * 1000

    @property
    def is_behind(self) -> bool:
        """Whether it decided less than was due, or late; of a query that tells no latency it is not known."""
        p99_ms = self.due.get("p99_ms") or 0
        return (self.decided_share is not None and self.decided_share < KEPT_SHARE) or p99_ms > MOST_P99_MS

    @property
    def keeps_up(self) -> bool:
        """Whether the load was what it was to be, and the contender decided it in time."""
        kept = self.kept_rate is not None and self.kept_rate >= KEPT_SHARE * DRIFT * self.rate
        return kept and not self.is_behind


@dataclass(frozen=True)
class StartResult:
    """One start of a contender: all rates of one round. `first_decision_s` is from its start to its first decision.

    `error` says why it has no (more) rates, and `failed_at` is the rate at which that happened, None where it was at
    none. `may_repeat`: it was killed, and does not promise to decide once. `is_set_aside`: a start of its round was
    disturbed and the round was run again, so that no result is made of it.
    """

    contender: str
    round: int
    rates: tuple[RateResult, ...] = ()
    first_decision_s: float | None = None
    error: str | None = None
    failed_at: float | None = None
    may_repeat: bool = False
    is_set_aside: bool = False

    @property
    def is_disturbed(self) -> bool:
        """Whether others took so much of the processor that its figures say little."""
        return (self.stolen_share or 0) > MOST_STOLEN

    @property
    def stolen_share(self) -> float | None:
        """The highest of its rates' shares of processor time that others took; None: not known."""
        return max((rate.stolen_share for rate in self.rates if rate.stolen_share is not None), default=None)

    @property
    def problem(self) -> str:
        """What went wrong, in one line; empty when nothing did.

        Of an error that quotes a log, that is what it says itself and the last line of the log.
        """
        if self.error is None:
            return "" if self.ok else "the audit found lost, repeated or unexpected decisions"
        first, *quoted = self.error.strip().splitlines()
        return f"{first.removesuffix('; its last lines:')}: {quoted[-1].strip()}" if quoted else first

    @property
    def ok(self) -> bool:
        """Whether it ran to its end, nothing was lost or unexpected, and nothing decided twice but as is promised."""
        # It is no fault that an audit can't tell all of a user's query.
        audits = (
            replace(
                one.audit,
                lost=one.audit.lost or 0,
                unexpected=one.audit.unexpected or 0,
                duplicated=0 if self.may_repeat else one.audit.duplicated,
            )
            for one in self.rates
        )
        return self.error is None and all(one.ok for one in audits)
