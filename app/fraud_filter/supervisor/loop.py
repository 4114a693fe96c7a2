"""The life of `fraud-filter run`: checks, the lock, then one attempt after the other."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_OK
from fraud_filter.lock.checkpoint_lock import checkpoint_lock
from fraud_filter.metrics.catalogue import RESTARTS, RULES_INFO
from fraud_filter.monitor.monitor import Monitor
from fraud_filter.query import preflight
from fraud_filter.rules.version import ruling_of
from fraud_filter.supervisor.attempt import Attempt
from fraud_filter.supervisor.failures import AWAY, REASONS, RestartableError
from fraud_filter.supervisor.handover import When, asked_by_signals
from fraud_filter.supervisor.policy import Policy
from fraud_filter.supervisor.set_aside import Search
from fraud_filter.supervisor.signals import stop_on_signals
from fraud_filter.supervisor.standby import Standby

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
        settings = preflight.complete(settings, inputs.partitions)
        if stop.requested:
            return EXIT_OK
        with checkpoint_lock(settings, standby=standby) as lock, closing(Monitor(settings, REASONS)) as monitor:
            monitor.metrics.of(RULES_INFO, ruling_of(inputs.rules, inputs.schema, settings).version).set(1)
            waiting = Standby(settings, monitor, stop, lock, asks) if standby else None
            if waiting:
                handlers.enter_context(asked_by_signals(waiting.ask))
                monitor.stand_by()
            search = Search(settings, stop)

            def attempt(number: int) -> None:
                monitor.streak.begin()
                try:
                    Attempt(settings, inputs, monitor, stop, lock, on_start, again, number == 0, search, waiting).run()
                except RestartableError as error:
                    search.ended(error)
                    if waiting:
                        waiting.queue_again()
                    elif error.reason == "handed-over":
                        return
                    raise

            def again(error: RestartableError) -> None:
                tell(error, 0, 0.0)

            def announce(error: RestartableError, failures: int, seconds: float) -> None:
                monitor.streak.fail(failures, str(error), waits_for_others=error.reason in AWAY)
                tell(error, failures, seconds)

            def tell(error: RestartableError, failures: int, seconds: float) -> None:
                monitor.metrics.of(RESTARTS, error.reason).inc()
                _log.warning(
                    "event=restarting mode=%s query=%s reason=%s in_s=%.1f attempt=%d of=%d cause=%r",
                    settings.mode, settings.query_name, error.reason, seconds, failures, settings.max_restarts,
                    str(error),
                )  # fmt: skip

            fresh = lambda: search.has_advanced() or monitor.streak.progress  # noqa: E731
            Policy(settings, attempt, fresh, announce).run(stop.event)
    return EXIT_OK
