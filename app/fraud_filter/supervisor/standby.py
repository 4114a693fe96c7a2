"""A filter that waits beside the active one, warm: Java and the session run, and the query's code has run before."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fraud_filter.checkpoint.contents import read_contents
from fraud_filter.checkpoint.files import CheckpointError, CheckpointFiles, open_files
from fraud_filter.checkpoint.notes import Fingerprint, differing
from fraud_filter.checkpoint.plan import plan_repair
from fraud_filter.config import Settings, refused
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.admin import find_input, open_admin
from fraud_filter.lock.checkpoint_lock import Lock
from fraud_filter.metrics.catalogue import TAKEOVERS
from fraud_filter.monitor.monitor import Monitor
from fraud_filter.query.preflight import Inputs
from fraud_filter.query.query import fingerprint
from fraud_filter.supervisor.failures import RestartableError
from fraud_filter.supervisor.handover import Request, When
from fraud_filter.supervisor.java import Java, silenced
from fraud_filter.supervisor.losses import compare
from fraud_filter.supervisor.query_run import Prepared, prepare
from fraud_filter.supervisor.signals import Stop
from fraud_filter.supervisor.state import find_misfit, look_back, wanted_state
from fraud_filter.supervisor.warm_up import warm_up
from fraud_filter.supervisor.written import WrittenDecisions
from fraud_filter.text.logs import get_logger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = get_logger(__name__)
#: Seconds between two looks at what the active filter runs with.
_COMPARE_S = 10.0


@dataclass
class Standby:
    """The wait for the checkpoint's lock; `is_over` once it is ours; `prepared` is what the query then starts from."""

    settings: Settings
    monitor: Monitor
    stop: Stop
    lock: Lock
    #: When the active filter is to end in our favour; None where we wait until it ends by itself.
    asks: When | None = None
    is_over: bool = False
    prepared: Prepared | None = None
    #: What the outputs hold; followed while we wait.
    written: WrittenDecisions = field(init=False)
    _is_warm: bool = False
    _waits: bool = False
    _differing: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.written = WrittenDecisions(self.settings)

    def wait(self, java: Java, spark: SparkSession, inputs: Inputs) -> bool:
        """Warms up and waits until the active filter is gone; does neither where there is none.

        Returns:
            Whether the lock is ours; False after a stop request.

        Raises:
            RestartableError: Java is gone.
            FraudFilterError: the warm-up shows that the query can't run here, or not on this checkpoint.
        """
        settings, began = self.settings, time.monotonic()
        files = open_files(spark, settings.checkpoint)
        if self._take(files):
            return True
        self.monitor.stand_by()
        self._warm_up(java, spark, files, inputs)
        if not self._is_due(files):
            own = fingerprint(inputs.query, settings)
            self._compare(files, own)  # who looks at a ready standby finds whether it differs
            self._follow_outputs(files)
            self._waits = True
            self.monitor.set_state("standby")
            _log.info(
                "standby_ready",
                mode=settings.mode,
                query=settings.query_name,
                seconds=round(time.monotonic() - began, 1),
            )
            self._watch(java, files, inputs, own)
        if self.is_over:
            self.monitor.metrics.of(TAKEOVERS).inc()
            self.monitor.set_differs(False)
            _log.warning(
                "taking_over",
                mode=settings.mode,
                query=settings.query_name,
                waited_s=round(time.monotonic() - began, 1),
            )
        return self.is_over

    def ask(self, when: When) -> None:
        """Has a standby that waits ask the active filter to end; for one that does not wait it means nothing."""
        if self._waits:
            self.asks = when

    def queue_again(self, *, is_warm: bool = False) -> None:
        """After our query has ended: whoever is warm goes on, and we wait in our turn.

        `is_warm`: its Java runs on and is warm already.
        """
        self.lock.release()
        self.is_over, self.prepared, self._is_warm = False, None, is_warm

    def _warm_up(self, java: Java, spark: SparkSession, files: CheckpointFiles, inputs: Inputs) -> None:
        settings = self.settings
        self.monitor.set_state("warming-up")
        topic_id = find_input(open_admin(settings), settings).id if settings.source == "kafka" else ""
        with java.killed_after(settings.start_timeout_s * 2 + settings.standby_warm_up_s), silenced(java.gateway):
            if not self._is_warm:
                warm_up(spark, files, inputs, settings, topic_id, lambda: self._is_due(files))
            self.prepared = prepare(spark, inputs, settings, topic_id)
        with suppress(FraudFilterError):  # what is wrong now may be right then
            plan_repair(read_contents(files), settings.mode, round(time.time() * 1000))
            if settings.source == "kafka":
                compare(files, settings)

    def _watch(self, java: Java, files: CheckpointFiles, inputs: Inputs, own: Fingerprint) -> None:
        request: Request | None = None
        compare_at = time.monotonic() + _COMPARE_S
        try:
            while not self._is_due(files):
                if when := self.asks:
                    self.asks = None  # what comes back to the queue waits in its turn
                    self._check_state(files, inputs)
                    request = self._request(files, when)
                if request:
                    request.renew()
                if time.monotonic() >= compare_at:
                    self._compare(files, own)
                    self._follow_outputs(files)
                    compare_at = time.monotonic() + _COMPARE_S
                if java.returncode is not None:
                    raise RestartableError("java-gone", f"Spark's Java process ended with code {java.returncode}")
                self.stop.event.wait(self.lock.look_s)
        finally:
            self._waits, self.asks = False, None
            if request:
                request.withdraw()

    def _check_state(self, files: CheckpointFiles, inputs: Inputs) -> None:
        """Refuses to ask for a handover after which the state could not be made, or would be another query's."""
        if inputs.state_partitions and not inputs.query.features and "query" in self._differing:
            reason = "keeps state, and has changed: Spark may refuse the state only after the handover"
            raise refused("query", self.settings.query, reason, "stop the other filter, then start this one")
        if self.settings.source == "kafka" and find_misfit(files, wanted_state(inputs, self.settings)):
            look_back(inputs, self.settings, compare(files, self.settings))

    def _request(self, files: CheckpointFiles, when: When) -> Request:
        """Asks for the handover; says what it costs where that is not nothing."""
        again = "none"
        if when == "now" and self.settings.source == "kafka":
            found = compare(files, self.settings)
            again = str(sum(max(0, end - (found.at or {}).get(n, end)) for n, end in found.ends.items()))
        _log.warning("asking_for_handover", at=when, payments_read_again_at_most=again)
        return Request(files, when)

    def _compare(self, files: CheckpointFiles, own: Fingerprint) -> None:
        """Says it once when our rules or settings are, or are no longer, other ones than the active filter's."""
        try:
            found = differing(files, own)
        except CheckpointError as error:
            _log.warning("standby_blind", query=self.settings.query_name, reason=error)
            return
        self.monitor.set_differs(bool(found))
        if found != self._differing:
            self._differing = found
            if found:
                _log.warning("standby_differs", query=self.settings.query_name, differs_in=",".join(found))
            else:
                _log.info("standby_alike", query=self.settings.query_name)

    def _follow_outputs(self, files: CheckpointFiles) -> None:
        """Reads on what is decided and not committed, so that a takeover has to read the last moment alone."""
        if self.settings.source != "kafka":
            return
        try:
            found = compare(files, self.settings)
            self.written.follow(found.topic.id, found.undecided)
        except FraudFilterError as error:
            _log.warning("standby_blind", query=self.settings.query_name, reason=error)

    def _is_due(self, files: CheckpointFiles) -> bool:
        """Whether the wait ends: the lock is ours, or somebody wishes us to stop."""
        return self.stop.requested or self._take(files)

    def _take(self, files: CheckpointFiles) -> bool:
        if not self.is_over:
            try:
                self.is_over = self.lock.take(files)
            except CheckpointError as error:
                _log.warning("standby_without_lock", query=self.settings.query_name, reason=error)
        return self.is_over
