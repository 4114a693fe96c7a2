"""How long to wait before the next start, and when to give up."""

from __future__ import annotations

import random
from dataclasses import dataclass

from fraud_filter.config import Settings
from fraud_filter.supervisor.failures import GaveUpError, RestartableError

#: Share of the first back-off by which each is lengthened at random: filters that failed together return apart.
_JITTER = 0.5
#: Seconds of the longest back-off, where the first one is not longer.
_LONGEST_S = 30.0
#: Doubled so often a back-off is longer than any limit.
_MOST_DOUBLINGS = 30


@dataclass
class Policy:
    """Counts the failures in a row; `failures` is how many there were since the query last made progress."""

    settings: Settings
    failures: int = 0

    def back_off(self, error: RestartableError, *, has_progressed: bool) -> float:
        """Seconds to wait after a run that ended with `error`; they double with each failure in a row.

        Raises:
            GaveUpError: `max_restarts` restarts in a row brought no progress.
        """
        settings = self.settings
        self.failures = 1 if has_progressed else self.failures + 1
        if self.failures > settings.max_restarts:
            raise GaveUpError(
                f"gave up after {settings.max_restarts} restarts in a row without progress (setting max_restarts, "
                f"FRAUD_MAX_RESTARTS); the last: {error}"
            )
        first = settings.restart_backoff_s
        doubled = first * float(2 ** min(self.failures - 1, _MOST_DOUBLINGS))
        return min(doubled + random.uniform(0, first * _JITTER), max(_LONGEST_S, first))
