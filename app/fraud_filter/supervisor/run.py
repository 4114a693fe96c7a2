"""`fraud-filter run`: checks, the lock, then one state after the other, as `states` has them, until it has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from fraud_filter.checkpoint.files import CheckpointError
from fraud_filter.checkpoint.notes import ACTIVE
from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_OK, FraudFilterError, UsageError
from fraud_filter.kafka.refusals import NoBrokerError
from fraud_filter.lock.checkpoint_lock import Lock, checkpoint_lock
from fraud_filter.metrics.catalogue import MODEL, RESTARTS, RULES_INFO
from fraud_filter.metrics.filter_metrics import State as ReportedState
from fraud_filter.monitor.health import LOOP
from fraud_filter.monitor.monitor import Monitor, StartPosition
from fraud_filter.query import preflight
from fraud_filter.query.query import fingerprint
from fraud_filter.spark import session
from fraud_filter.spark.internals import await_tasks
from fraud_filter.supervisor.cluster import asked_too_few, await_executors, await_slots, check_shared
from fraud_filter.supervisor.failures import AWAY, OUTLIVED_BY_JAVA, REASONS, Reason, RestartableError, back_off_s
from fraud_filter.supervisor.handover import Handover, When, asked_by_signals
from fraud_filter.supervisor.java import Java, silence
from fraud_filter.supervisor.query_run import Ending, explain_end, plan_query, prepare, start
from fraud_filter.supervisor.set_aside import Search, set_aside
from fraud_filter.supervisor.signals import Stop, stop_on_signals
from fraud_filter.supervisor.standby import Standby
from fraud_filter.supervisor.start_position import find_start_position, pass_decided
from fraud_filter.supervisor.states import Event, State, next_state
from fraud_filter.supervisor.written import WrittenDecisions
from fraud_filter.text.logs import get_logger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_log = get_logger(__name__)
#: A query that has failed has nothing to end well: what was not committed is read again.
_END_FAILED_S = 5.0
#: An executor that does not end its tasks by then hangs; should it go on, its decisions are those of a former writer.
_END_TASKS_S = 5.0
#: After a handover: who asked takes the lock before we want it again, and the processor time that a start needs.
_AFTER_HANDOVER_S = 3.0
#: After this filter lost its task slots: so many looks of a standby, before we want the lock again.
_LOOKS_OF_STANDBY = 4
#: Spark's own end after the query's; nothing is at stake any more.
_END_S = 8.0
#: What the metric says from a state on. The monitor, a standby and the query's end report the others.
_REPORTED: dict[State, ReportedState] = {"launching": "starting", "checking": "starting", "backing-off": "backing-off"}


def run(
    settings: Settings,
    *,
    standby: bool = False,
    asks: When | None = None,
) -> int:
    """Runs the filter until SIGTERM or SIGINT.

    Args:
        settings: the effective configuration.
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
            monitor.metrics.of(RULES_INFO, inputs.query.version).set(1)
            waiting = Standby(settings, monitor, stop, lock, asks) if standby else None
            if waiting:
                handlers.enter_context(asked_by_signals(waiting.ask))
                monitor.stand_by()
            FilterRun(settings, inputs, monitor, stop, lock, waiting).run()
    return EXIT_OK


class FilterRun:
    """The loop over the states: what each does, and what the next one needs of it.

    `first`: nothing has run or waited yet, so that bad input ends the program.
    """

    def __init__(
        self,
        settings: Settings,
        inputs: preflight.Inputs,
        monitor: Monitor,
        stop: Stop,
        lock: Lock,
        standby: Standby | None = None,
    ) -> None:
        self.settings, self.inputs, self.monitor, self.stop, self.lock = settings, inputs, monitor, stop, lock
        self.standby = standby
        #: How many queries in a row ended without progress while Java lived on.
        self.restarts_in_java = 0
        self.search = Search(settings, stop)
        self.written = standby.written if standby else WrittenDecisions(settings)
        self.first = True
        #: When the present start began, on the monotonic clock.
        self.began = 0.0
        #: Why the last query run ended.
        self.error: RestartableError | None = None
        self._java: Java | None = None
        self._spark: SparkSession | None = None
        self._query: tuple[StreamingQuery, Ending, Handover] | None = None
        self.steps: dict[State, Callable[[], Event]] = {
            "launching": self._launch,
            "checking": self._check,
            "standing-by": self._stand_by,
            "starting": self._start,
            "running": self._follow,
            "handing-over": self._hand_over,
            "backing-off": self._back_off,
        }

    def run(self) -> None:
        """Goes from state to state until the program is to end.

        Raises:
            FraudFilterError: no new start can cure what happened.
        """
        state: State = "launching"
        end_s = _END_FAILED_S
        try:
            while state != "ended":
                state = self._move(state)
            end_s = _END_S
        finally:
            self.monitor.set_state("stopping")
            self.written.close()
            self._end_java(end_s)

    def _move(self, state: State) -> State:
        """Does what is to be done in a state; returns the next one."""
        if state in _REPORTED:
            self.monitor.set_state(_REPORTED[state])
        try:
            # A query that runs is ended well, by its own step.
            has_query = state in ("running", "handing-over")
            event = "stop-requested" if self.stop.requested and not has_query else self.steps[state]()
        except Exception as error:
            event = "failed"
            ended_by = self._explain(error)
            if self.stop.requested:
                event = "stop-requested"
            elif isinstance(ended_by, RestartableError):
                self.error = ended_by
            else:
                self._log_change(state, "refused", type(ended_by).__name__)
                raise ended_by from None
        reason = self.error.reason if self.error and event in ("failed", "query-restarts") else event
        return self._log_change(state, event, reason)

    def _log_change(self, state: State, event: Event, reason: str) -> State:
        target = next_state(state, event)
        _log.info(
            "state_changed", query=self.settings.query_name, from_state=state, to_state=target, on=event, reason=reason
        )
        return target

    def _explain(self, error: Exception) -> Exception:
        if self.stop.requested or not self._java:
            return error
        cause = RestartableError("lock-lost", self.lock.lost) if self.lock.lost else error
        return explain_end(cause, self._java, self._spark, self.settings)

    @contextmanager
    def _restartable(self, reason: Reason, kind: type[FraudFilterError]) -> Iterator[None]:
        """Whatever is away at the first start ends the program; later it is waited for.

        Raises:
            RestartableError: an error of this `kind`, later.
        """
        try:
            yield
        except kind as error:
            if self.first or isinstance(error, RestartableError):
                raise
            raise RestartableError(reason, str(error)) from None

    @contextmanager
    def _within_start(self) -> Iterator[None]:
        """Kills Java where the block takes longer than a start may, or at a stop request."""
        with self.java.killed_after(self.settings.start_timeout_s), self.stop.hastened_by(self.java.kill):
            yield

    @property
    def java(self) -> Java:
        """The Java process of the present attempt."""
        assert self._java  # noqa: S101 - all states after launching have one
        return self._java

    @property
    def spark(self) -> SparkSession:
        """The session in it."""
        assert self._spark  # noqa: S101 - as `java`
        return self._spark

    def _launch(self) -> Event:
        self.monitor.streak.begin()
        self.began = time.monotonic()
        if not self.first:
            self._count_partitions()
        with self._restartable("checkpoint-away", CheckpointError):
            self.lock.renew()
        with self._restartable("java-gone", FraudFilterError):
            stopped = self.stop.event.is_set
            self._java = Java(session.launch(self.settings, self.inputs.mode, self.lock.descriptor, stopped))
        with self._within_start():
            with self._restartable("spark-away", UsageError):
                self._spark = session.connect(self.java.gateway, self.settings, self.inputs.cores)
            await_executors(self.spark, self.settings, self.stop)
        return "connected"

    def _count_partitions(self) -> None:
        with self._restartable("broker-away", FraudFilterError):
            counted = preflight.count_partitions(self.settings)
        self.inputs = replace(self.inputs, partitions=counted or self.inputs.partitions)

    def _check(self) -> Event:
        spark, settings = self.spark, self.settings
        waits = self.standby is not None or not self.first
        with self._within_start():
            self.inputs = inputs = plan_query(spark, self.inputs, settings)
            if not waits:
                preflight.check_slots(spark, inputs, settings)
        if waits:
            with self.stop.hastened_by(self.java.kill):
                await_slots(spark, inputs, settings, self.monitor, self.stop)
        with self._within_start():
            if self.first and not self.stop.requested:
                check_shared(spark, inputs, settings)
        return "lock-is-held" if self.standby and not self.standby.is_over else "checked"

    def _stand_by(self) -> Event:
        assert self.standby  # noqa: S101 - no other filter comes here
        with (
            self.stop.hastened_by(self.java.kill),
            self._restartable("checkpoint-away", CheckpointError),
            self._restartable("broker-away", NoBrokerError),
        ):
            if not self.standby.wait(self.java, self.spark, self.inputs):
                return "stop-requested"
        self.first, self.began = False, time.monotonic()
        self.inputs = replace(self.inputs, partitions=self.monitor.partitions or self.inputs.partitions)
        return "lock-taken"

    def _start(self) -> Event:
        from fraud_filter.query import sinks

        spark, inputs = self.spark, self.inputs
        with self.stop.hastened_by(self.java.kill):
            slots = await_slots(spark, inputs, self.settings, self.monitor, self.stop)
        broken = self.error is not None and self.error.reason == "state-unreadable"
        settings, position = self._find_position(state_is_broken=broken)
        if inputs.query.sets_aside and self.search.start_at(position.at) and not self.stop.requested:
            with self.stop.hastened_by(self.java.kill):
                has_moved = set_aside(
                    self.search, spark, self.java, inputs, position, self.written, self.monitor.metrics
                )
            if has_moved:
                settings, position = self._find_position()
            elif self.search.all_passed and inputs.query.features and not self.stop.requested:
                settings, position = self._find_position(state_is_broken=True)
        if self.stop.requested:
            return "stop-requested"
        with self._within_start():
            with self._restartable("broker-away", FraudFilterError):
                self.written.follow(position.topic_id, position.undecided)
            kept = self.standby.prepared if self.standby else None
            prepared = prepare(spark, inputs, settings, position.topic_id, position.watermark_ms, kept)
            with self._restartable("broker-away", FraudFilterError):
                written = self.written.settle(self.stop) | position.for_state
            if self.stop.requested:  # what is written is not known
                return "stop-requested"
            if not inputs.state_partitions:
                with self._restartable("checkpoint-away", CheckpointError):
                    position = pass_decided(position, settings, written)
            prepared.written.fill(written)
            query = start(sinks.write(prepared.decisions, inputs.mode, settings, position.writer), settings)
            with suppress(CheckpointError):  # it is for standbys; the query does without
                ACTIVE.write(position.files, fingerprint(inputs.query, self.settings))
        self.written.close()
        self.monitor.metrics.set_slots(inputs.slots, slots)
        if inputs.query.model_version:
            self.monitor.metrics.of(MODEL, inputs.query.model_version).set(1)
        gives_way = self.standby is not None
        with self._within_start():
            _log.info(
                "started",
                mode=settings.mode,
                query=settings.query_name,
                run=query.runId,
                partitions=inputs.partitions,
                task_slots=slots,
                **inputs.query.described,
                seconds=round(time.monotonic() - self.began, 1),
            )
            ending = Ending(query, self.settings, prepared, gives_way=gives_way)
            self.monitor.watch(spark, query, inputs, position, ending.alarm, gives_way=gives_way)
            handover = Handover(spark, query, inputs.mode, position.files, ending.hand_over)
        self._query, self.first = (query, ending, handover), False
        return "started"

    def _find_position(self, *, state_is_broken: bool = False) -> tuple[Settings, StartPosition]:
        with self._within_start(), self._restartable("checkpoint-away", CheckpointError):
            return find_start_position(
                self.spark, self.inputs, self.settings, self.monitor, self.stop, self.lock,
                state_is_broken=state_is_broken,
            )  # fmt: skip

    def _follow(self) -> Event:
        """Makes no call that could hang."""
        assert self._query  # noqa: S101 - it was started
        _, ending, handover = self._query
        error = ending.wait(self.java, self.stop)
        if isinstance(error, RestartableError) and error.reason == "stalled":
            self.java.kill()  # else each call that still waits for it delays the next filter
        handover.close()
        if error is None:
            self._end_query()
            return "stop-requested"
        if handover.agreed and isinstance(error, RestartableError) and error.reason in ("handed-over", "query-ended"):
            return "handover-agreed"
        if isinstance(error, RestartableError) and error.reason in OUTLIVED_BY_JAVA:
            return self._restart_query(error)
        raise error

    def _restart_query(self, error: RestartableError) -> Event:
        """In the same Java, whose own start is most of a restart; a standby lets the other filter go on meanwhile."""
        with suppress(Exception):  # it is on its way out: what can't be ended well is killed
            self._end_query()
        self.restarts_in_java = 0 if self.monitor.streak.progress else self.restarts_in_java + 1
        if self._java_is_lost or self.restarts_in_java >= LOOP:
            raise error
        self.monitor.streak.begin()
        self.error, self.began = error, time.monotonic()
        if error.reason != "slots-lacking":
            self._count_partitions()
            with self._within_start():
                is_too_small = asked_too_few(self.spark, self.inputs, self.settings)
            if is_too_small:
                raise error
        self._report_restart(error)
        if self.standby and error.reason == "slots-lacking":
            self.standby.queue_again()
            self.stop.event.wait(self.lock.look_s * _LOOKS_OF_STANDBY)
        return "query-restarts"

    def _hand_over(self) -> Event:
        """Ends the query and gives the lock to who asked for it: a query that has ended writes no checkpoint any more.

        Raises:
            RestartableError: Java did not outlive it, and this filter is to wait as a standby.
        """
        assert self._query  # noqa: S101 - it runs
        self._end_query()
        self.lock.release()
        _log.warning("handed_over", mode=self.settings.mode, query=self.settings.query_name)
        self.stop.event.wait(_AFTER_HANDOVER_S)
        if not self.standby:
            return "handed-over"
        done = RestartableError("handed-over", "another filter has asked to go on from the checkpoint")
        if self._java_is_lost:
            raise done
        self._report_restart(done)
        self.standby.queue_again(is_warm=True)
        return "queued-again"

    def _back_off(self) -> Event:
        assert self.error  # noqa: S101 - it has failed
        error, self.first = self.error, False
        self._end_java(_END_FAILED_S)
        self.search.ended(error)
        if self.standby:
            self.standby.queue_again()
        failures = self.monitor.streak.fail(
            str(error), waits_for_others=error.reason in AWAY, has_progressed=self.search.has_advanced()
        )
        seconds = back_off_s(self.settings, failures, error)
        self._report_restart(error, failures, seconds)
        self.stop.event.wait(seconds)
        return "waited"

    def _report_restart(self, error: RestartableError, failures: int = 0, seconds: float = 0.0) -> None:
        self.monitor.metrics.of(RESTARTS, error.reason).inc()
        _log.warning(
            "restarting",
            mode=self.settings.mode,
            query=self.settings.query_name,
            reason=error.reason,
            in_s=round(seconds, 1),
            attempt=failures,
            of=self.settings.max_restarts,
            cause=error,
        )

    @property
    def _java_is_lost(self) -> bool:
        return self.java.returncode is not None or self.java.overdue

    def _end_query(self) -> None:
        assert self._query  # noqa: S101 - it runs
        query, self._query = self._query[0], None
        settings, began = self.settings, time.monotonic()
        self.monitor.unwatch()
        self.monitor.set_state("stopping")
        _log.info("stopping", mode=settings.mode, query=settings.query_name, signal=self.stop.signal or "none")
        with self.java.killed_after(settings.stop_timeout_s, dump=True):
            is_last = self.stop.requested  # else Java goes on
            if is_last:
                silence(self.java.gateway)
            query.stop()
            if not is_last:  # what tasks still write is to lie before what the next start reads
                await_tasks(self.spark, min(_END_TASKS_S, settings.stop_timeout_s / 2))
        seconds = time.monotonic() - began
        _log.info("stopped", mode=settings.mode, query=settings.query_name, seconds=round(seconds, 1))

    def _end_java(self, seconds: float) -> None:
        self.monitor.unwatch()
        self._query = None
        if self._java:
            java, spark = self._java, self._spark
            self._java = self._spark = None
            java.end(spark, seconds)
