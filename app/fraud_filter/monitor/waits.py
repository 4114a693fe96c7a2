"""What keeps the query from reading, though it runs: open transactions, partitions without a leader, an away input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fraud_filter.checkpoint.progress import Offsets
from fraud_filter.monitor.input_watch import Seen


@dataclass
class Waits:
    """Since when (seconds since 1970) each wait lasts; `look` keeps it.

    A partition is held since its end rests before records of an open transaction; where the end moves on, another
    transaction begins to hold it.
    """

    held: dict[int, float] = field(default_factory=dict)
    unknown: dict[int, float] = field(default_factory=dict)
    #: Since when nothing at all could be read of the input.
    silent: float | None = None
    _ends: Offsets = field(default_factory=dict)

    def look(self, seen: Seen | None, now: float) -> None:
        """One look at the input; None: nothing could be read of it, and what was known before stays."""
        if seen is None:
            self.silent = self.silent or now
            return
        self.silent = None
        held = {n: bounds.end for n, bounds in seen.bounds.items() if bounds.held}
        same = {n: since for n, since in self.held.items() if held.get(n) == self._ends.get(n)}
        self.held, self._ends = {n: same.get(n, now) for n in held}, held
        self.unknown = {n: self.unknown.get(n, now) for n in seen.partitions - seen.bounds.keys()}

    def trouble(self, now: float, patience_s: float) -> str:
        """What has lasted longer than `patience_s` seconds, as a sentence without an end; else ""."""
        if self.silent is not None and now - self.silent > patience_s:
            return f"the ends of the input could not be read for {now - self.silent:.0f} s"
        for waits, what in ((self.unknown, "no broker tells the end of"), (self.held, "an open transaction holds")):
            if old := _older(waits, now - patience_s):
                names = ", ".join(str(number) for number in old)
                seconds = now - min(waits[number] for number in old)
                return f"{what} {'partition' if len(old) == 1 else 'partitions'} {names}, for {seconds:.0f} s by now"
        return ""


def _older(waits: Mapping[int, float], then: float) -> list[int]:
    return sorted(number for number, since in waits.items() if since < then)
