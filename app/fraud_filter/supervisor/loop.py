"""The life of `fraud-filter run`: checks, the lock, then one attempt after the other."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from fraud_filter.checkpoint.progress import Offsets
from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_OK
from fraud_filter.lock.checkpoint_lock import checkpoint_lock
from fraud_filter.monitor.monitor import Monitor
from fraud_filter.query import preflight, starting_offsets
from fraud_filter.rules.version import ruling_of
from fraud_filter.supervisor.attempt import Attempt
from fraud_filter.supervisor.failures import REASONS, RestartableError
from fraud_filter.supervisor.policy import Policy
from fraud_filter.supervisor.relay.request import When, asked_by_signals
from fraud_filter.supervisor.relay.standby import Standby
from fraud_filter.supervisor.signals import stop_on_signals

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger(__name__)


def run(
    settings: Settings,
    on_start: Callable[[StreamingQuery], None] | None = None,
    *,
    standby: bool = False,
    asks: When | None = None,
) -> int:
    """Runs the filter until SIGTERM or SIGINT.

    Args:
        settings: the effective configuration.
        on_start: called with the query each time that it runs.
        standby: where another filter works on the checkpoint, waits beside it, warm, and takes over when it is gone;
            while it waits SIGUSR1 has it ask that one to end at its next commit, SIGUSR2 at once.
        asks: as a standby that is warm, when the other filter is asked to end; None for not at all.

    Returns:
        The exit code: 0 after a stop that was asked for, or a handover to another filter.

    Raises:
        UsageError: bad input, found before or at the start.
        DataLossError: unread records are gone.
        GaveUpError: too many restarts without progress.
        FraudFilterError: the program can't run here.
    """
    with stop_on_signals(settings.stop_timeout_s) as stop, ExitStack() as handlers:
        inputs = preflight.check_inputs(settings)
        settings = starting_offsets.complete(settings, inputs.partitions)
        if stop.requested:
            return EXIT_OK
        with checkpoint_lock(settings, standby=standby) as lock, closing(Monitor(settings, REASONS)) as monitor:
            monitor.metrics.set_rules(ruling_of(inputs.rules, inputs.schema, settings).version)
            waiting = Standby(settings, monitor, stop, lock, asks) if standby else None
            if waiting:
                handlers.enter_context(asked_by_signals(waiting.ask))
                monitor.stand_by()
            wellbeing = _Wellbeing(settings, monitor)

            def attempt(number: int) -> None:
                wellbeing.begin()
                started = wellbeing.started(on_start)
                try:
                    Attempt(settings, inputs, monitor, stop, lock, started, again, number == 0, waiting).run()
                except RestartableError as error:
                    if waiting:
                        waiting.queue_again()
                    elif error.reason == "handed-over":
                        return
                    raise

            def again(error: RestartableError) -> None:
                announce(error, 0, 0.0)

            def announce(error: RestartableError, failures: int, seconds: float) -> None:
                monitor.metrics.count_restart(error.reason)
                _log.warning(
                    "event=restarting mode=%s query=%s reason=%s in_s=%.1f attempt=%d of=%d cause=%r",
                    settings.mode, settings.query_name, error.reason, seconds, failures, settings.max_restarts,
                    str(error),
                )  # fmt: skip

            Policy(settings, attempt, wellbeing.fresh, announce).run(stop.event)
    return EXIT_OK


class _Wellbeing:
    """Whether the last query run made progress: it committed something new, or ran for `restart_reset_s`."""

    def __init__(self, settings: Settings, monitor: Monitor) -> None:
        self._settings = settings
        self._monitor = monitor
        self._committed: Offsets = {}
        self._started_at: float | None = None

    def begin(self) -> None:
        """A life begins."""
        self._committed = self._monitor.committed
        self._started_at = None

    def started(self, then: Callable[[StreamingQuery], None] | None) -> Callable[[StreamingQuery], None]:
        """To be called with the query once it runs; calls `then` with it."""

        def note(query: StreamingQuery) -> None:
            self._started_at = time.monotonic()
            if then:
                then(query)

        return note

    def fresh(self) -> bool:
        """To be asked when a query run has ended."""
        ran_s = time.monotonic() - self._started_at if self._started_at is not None else 0.0
        return self._monitor.committed != self._committed or ran_s > self._settings.restart_reset_s
