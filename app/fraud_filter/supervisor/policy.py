"""When to start the query again, after how long, and when to give up. Knows neither Spark nor Kafka."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter
from tenacity.nap import sleep_using_event
from tenacity.stop import stop_when_event_set

from fraud_filter.config import Settings
from fraud_filter.supervisor.failures import GaveUpError, RestartableError

_log = logging.getLogger(__name__)
#: Share of the first back-off by which each is lengthened at random: filters that failed together return apart.
_JITTER = 0.5
#: Seconds of the longest back-off, where the first one is not longer.
_LONGEST_S = 30.0


@dataclass(frozen=True)
class Policy:
    """`attempt(number)` makes one query run: it returns when it was stopped, and raises what ended it.

    `fresh()` says, after an attempt, whether the query did well in it; the count of failures then starts again.
    `announce(error, attempt, seconds)` is told of each restart before its back-off.
    """

    settings: Settings
    attempt: Callable[[int], None]
    fresh: Callable[[], bool]
    announce: Callable[[RestartableError, int, float], None]

    def run(self, stop: Event) -> None:
        """Runs attempts until one was stopped; `stop` ends a back-off at once.

        Raises:
            GaveUpError: `max_restarts` restarts in a row brought no progress.
            FraudFilterError: an attempt ended with something that a restart can't cure.
        """
        settings = self.settings
        attempts = Retrying(
            retry=retry_if_exception_type(RestartableError),
            wait=wait_exponential_jitter(
                multiplier=settings.restart_backoff_s,
                max=max(_LONGEST_S, settings.restart_backoff_s),
                jitter=settings.restart_backoff_s * _JITTER,
            ),
            stop=stop_after_attempt(settings.max_restarts + 1) | stop_when_event_set(stop),
            sleep=sleep_using_event(stop),
            after=self._count,
            before_sleep=self._announce,
            reraise=True,
        )
        lives = iter(range(2**31))
        try:
            attempts(lambda: None if stop.is_set() else self.attempt(next(lives)))
        except RestartableError as error:
            if stop.is_set():
                return
            raise GaveUpError(
                f"gave up after {settings.max_restarts} restarts in a row without progress (setting max_restarts, "
                f"FRAUD_MAX_RESTARTS); the last: {error}"
            ) from None

    def _count(self, state: RetryCallState) -> None:
        """Before tenacity decides on wait and stop: what counts are the failures since the query last did well."""
        if self.fresh():
            state.attempt_number = 1

    def _announce(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, RestartableError):
            self.announce(error, state.attempt_number, state.upcoming_sleep)
