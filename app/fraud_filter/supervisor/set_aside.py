"""Finds the records that end the query again and again, and has the query go on without them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer

from fraud_filter import schema as layout
from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.checkpoint.notes import INPUT
from fraud_filter.checkpoint.progress import CheckpointReader, Offsets
from fraud_filter.checkpoint.repair import go_on_at
from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.client import librdkafka_config
from fraud_filter.kafka.consumer import find_input_bounds, first_times_ms, open_consumer, reach_back, read_records
from fraud_filter.metrics.catalogue import SET_ASIDE
from fraud_filter.metrics.filter_metrics import FilterMetrics
from fraud_filter.monitor.monitor import StartPosition
from fraud_filter.query.preflight import Inputs
from fraud_filter.records import decision_id
from fraud_filter.rules.features import reach_ms
from fraud_filter.supervisor.failures import Reason, RestartableError, cause
from fraud_filter.supervisor.java import Java
from fraud_filter.supervisor.losses import Bounds
from fraud_filter.supervisor.narrowing import Narrowing, Span
from fraud_filter.supervisor.signals import Stop
from fraud_filter.supervisor.written import WrittenDecisions
from fraud_filter.text.logs import get_logger

if TYPE_CHECKING:
    from pyroaring import BitMap64
    from pyspark.sql import SparkSession

_log = get_logger(__name__)
#: After so many ends at the same place a record may be the reason.
_ENDS = 2
#: What a record may cause.
_BY_RECORD: frozenset[Reason] = frozenset(
    ("query-failed", "query-ended", "java-gone", "stalled", "start-hung", "slots-back", "slots-lacking")
)
#: What no record causes, by the names of Java's exceptions.
_ELSEWHERE = re.compile(
    r"(Authentication|Authorization|Timeout|UnknownTopicOrPartition|NotEnoughReplicas\w*|NotLeaderOrFollower|Disconnect|"
    r"Network|Storage|Ssl|Interrupted|UnknownHost|Config|AccessDenied|NoSuchFile|ClassNotFound)\w*(Exception|Error)"
    r"|No space left"
)
#: Records before the position, which passed once, that are tried where no other ones pass.
_CONTROL = 10
#: Seconds that a range may take: a record must not hold the search either.
_MOST_S = 120.0


class Search:
    """Counts the ends of queries at the same position, and searches once they repeat; it outlives Java."""

    def __init__(self, settings: Settings, stop: Stop) -> None:
        self.settings, self.stop = settings, stop
        self._at: Offsets | None = None
        self._ends = 0
        self._narrowing: Narrowing | None = None
        self._trying = self._advanced = self._reads = False
        #: Partitions of which a try took more memory than there is, or Java died.
        self.heavy: set[int] = set()
        #: Whether the last search found that each record passes without the state.
        self.all_passed = False

    def start_at(self, at: Offsets) -> bool:
        """A query is to start at these offsets: whether a search comes before it."""
        if at != self._at:
            self._at, self._ends, self._narrowing, self._trying = dict(at), 0, None, False
            self.all_passed = False
        self._reads = True
        return self._ends >= _ENDS and self.settings.source == "kafka"

    def ended(self, error: RestartableError) -> None:
        """A query, or a search, ended. What ended before it read anything, such as Java at its start, is no sign."""
        if error.reason in _BY_RECORD and self._reads:
            self._ends += 1
        self._reads = False

    def has_advanced(self) -> bool:
        """Whether the search came forward since this was asked last: a restart is worth its while then."""
        advanced, self._advanced = self._advanced, False
        return advanced

    def run(
        self,
        spark: SparkSession,
        java: Java,
        inputs: Inputs,
        position: StartPosition,
        written: WrittenDecisions,
        bounds: Bounds,
    ) -> Narrowing | None:
        """Searches from where the query is to start; `bounds` are the first and the end offset by partition.

        Returns:
            What came of it; None where that is nothing, or somebody wishes us to stop.

        Raises:
            RestartableError: the reason is none of the records.
            Exception: Java is gone; the search goes on in the next one.
        """
        at = self._at or {}
        if self._narrowing is None:
            _log.warning("searching_record", query=self.settings.query_name, ends=self._ends)
            self._narrowing = Narrowing(at, {number: end for number, (_, end) in bounds.items()})
            self.heavy = set()
        narrowing = self._narrowing
        if self._trying:  # Java died of it
            self._note_heavy(narrowing.next() or [])
            self._note(passed=False)
        while not self.stop.requested and (spans := narrowing.next()):
            self._trying = True
            passed = self._try(spark, java, inputs, position, written, spans)
            is_single = len(spans) == 1 and spans[0].end - spans[0].start == 1
            if not passed and inputs.query.features and is_single:  # what it looks back at may be the reason
                passed = self._try(spark, java, inputs, position, written, spans, looks_back=False)
            self._note(passed=passed)
            if narrowing.is_unproven:
                before = [Span(n, max(low, at[n] - _CONTROL), at[n]) for n, (low, _) in bounds.items() if n in at]
                before = [span for span in before if span.start < span.end]
                if before and self._try(spark, java, inputs, position, written, before):
                    narrowing.vouch()
        if self.stop.requested:
            return None
        self._narrowing, self._ends = None, 0
        _log.warning("searched_record", query=self.settings.query_name, found=len(narrowing.found))
        is_told = not (narrowing.is_vain or narrowing.is_unproven)
        self.all_passed = is_told and not narrowing.found
        return narrowing if is_told else None

    def _note_heavy(self, spans: list[Span]) -> None:
        if len(spans) == 1:
            self.heavy.add(spans[0].partition)

    def _note(self, *, passed: bool) -> None:
        assert self._narrowing  # noqa: S101 - there is one while something is tried
        self._trying, self._advanced = False, True
        (self._narrowing.passed if passed else self._narrowing.failed)()

    def _try(
        self,
        spark: SparkSession,
        java: Java,
        inputs: Inputs,
        position: StartPosition,
        written: WrittenDecisions,
        spans: list[Span],
        *,
        looks_back: bool = True,
    ) -> bool:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        without = self._narrowing.failing if self._narrowing else []
        try:
            with java.killed_after(_MOST_S):
                # A try that failed has written some.
                known = settle(written, self.stop) | position.for_state
                decide_range(spark, inputs, self.settings, position, known, spans, without, looks_back=looks_back)
        except (Py4JJavaError, PySparkException) as error:  # others are no answer of Java's
            said = str(error)
            if java.returncode is not None or java.overdue:
                raise
            if _ELSEWHERE.search(said):
                self._trying = False
                raise RestartableError("query-failed", f"the search for a record failed: {cause(said)}") from None
            if "OutOfMemoryError" in said:
                self._note_heavy(spans)
            return False
        return True


def settle(written: WrittenDecisions, stop: Stop) -> BitMap64:
    """What the outputs hold, as `WrittenDecisions.settle`.

    Raises:
        RestartableError: the brokers don't answer.
    """
    try:
        return written.settle(stop)
    except FraudFilterError as error:
        raise RestartableError("broker-away", str(error)) from None


def decide_range(
    spark: SparkSession,
    inputs: Inputs,
    settings: Settings,
    position: StartPosition,
    written: BitMap64,
    spans: list[Span],
    without: list[tuple[int, int]],
    *,
    looks_back: bool = True,
) -> None:
    """Decides the records of ranges, one of a partition, and writes what is to be written of them.

    Args:
        position: whose topic and writer it is.
        written: `decision_id` of payments whose decisions the outputs hold.
        without: partition and offset of records that are not read.
        looks_back: whether features look at records before the ranges.

    Raises:
        PySparkException, Py4JError: a record can't be decided, or something is away.
    """
    from fraud_filter.query import sinks, sources
    from fraud_filter.query.once import Written

    first, last = {span.partition: span.start for span in spans}, {span.partition: span.end for span in spans}
    begin = first
    if looks_back and inputs.query.features:
        begin = reach_back(settings, first, first_times_ms(settings, first, last), reach_ms(inputs.query.features))
    read = {number: (at, last[number]) for number, at in begin.items()}
    records = [sources.read_range(spark, settings, layer) for layer in layers(read, without)]
    decisions = inputs.query.decide(
        reduce(lambda one, other: one.union(other), records), settings, position.topic_id,
        Written(written), since=first,
    )  # fmt: skip
    sinks.write_range(decisions, settings, position.writer)


def layers(read: Mapping[int, tuple[int, int]], without: list[tuple[int, int]]) -> list[dict[int, tuple[int, int]]]:
    """The ranges, from the first to before the second offset by partition, as several without the offsets left out.

    Each layer has one range of a partition at most.
    """
    cut: dict[int, list[tuple[int, int]]] = {}
    for number, (start, end) in read.items():
        marks = sorted({offset for partition, offset in without if partition == number and start <= offset < end})
        pairs = zip([start, *(offset + 1 for offset in marks)], [*marks, end], strict=True)
        cut[number] = [pair for pair in pairs if pair[0] < pair[1]]
    most = max(map(len, cut.values()), default=0)
    return [{number: pairs[at] for number, pairs in cut.items() if at < len(pairs)} for at in range(most)]


#: For the time of a record that could not be read.
_UNKNOWN_MS = -1

Headers = list[tuple[str, str | bytes | None]]


def set_aside(
    search: Search,
    spark: SparkSession,
    java: Java,
    inputs: Inputs,
    position: StartPosition,
    written: WrittenDecisions,
    metrics: FilterMetrics,
) -> bool:
    """Searches for records that end the query, and has it go on behind what was found; whether it does.

    Raises:
        RestartableError: the brokers don't answer, or it is no fault of a record.
        CheckpointError: the file system refuses.
        Exception: Java is gone; the search goes on in the next one.
    """
    settings = search.settings
    try:
        with open_consumer(settings) as consumer:
            bounds = find_input_bounds(consumer, settings)
        written.follow(position.topic_id, {number: max(0, at - _CONTROL) for number, at in position.at.items()})
    except FraudFilterError as error:
        raise RestartableError("broker-away", str(error)) from None
    found = search.run(spark, java, inputs, position, written, bounds)
    if found is None:
        return False
    own = {layout.HEADER_RULES: inputs.query.version}
    own |= {layout.HEADER_WRITER: str(position.writer)}
    known = settle(written, search.stop) | position.for_state
    own |= {layout.HEADER_TOPIC_ID: position.topic_id} if position.topic_id else {}
    own |= {layout.HEADER_MODEL: inputs.query.model_version} if inputs.query.model_version else {}
    for partition, offset in found.found:
        if decision_id(partition, offset) in known:  # by a filter that died before it went on
            continue
        reject(settings, partition, offset, own, is_heavy=partition in search.heavy)
        metrics.of(SET_ASIDE).inc()
    # A state that has not seen the others' payments reads them.
    behind = {number: offset + 1 for number, offset in found.found} if inputs.query.features else found.done
    if behind:
        go_on_behind(position.files, settings, position.at | behind)
    return bool(behind)


def reject(settings: Settings, partition: int, offset: int, own: Mapping[str, str], *, is_heavy: bool) -> None:
    """Writes a record that can't be decided to the topic of rejected records.

    With its key and value where the topic takes them.

    Args:
        own: headers of all records that this query writes.
        is_heavy: it may not fit into the memory, so that nobody reads it.

    Raises:
        RestartableError: the topic does not take it.
    """
    message = None if is_heavy else _read(settings, partition, offset)
    time_ms = message.timestamp()[1] if message else _UNKNOWN_MS
    texts = {
        layout.HEADER_TOPIC: settings.input_topic,
        layout.HEADER_PARTITION: partition,
        layout.HEADER_OFFSET: offset,
        layout.HEADER_TIMESTAMP: time_ms,
        **own,
        layout.HEADER_DECISION: layout.REJECT,
        layout.HEADER_REASON: layout.REASON_UNDECIDABLE,
    }
    headers: Headers = [(name, str(text).encode()) for name, text in texts.items()]
    key, value = (message.key(), message.value()) if message else (None, None)
    if len(key or b"") + len(value or b"") > settings.max_record_bytes:
        key = value = None
    error = _produce(settings, key, value, headers)
    if error and error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
        error = _produce(settings, None, None, headers)
    if error:
        raise RestartableError("broker-away", f"topic {settings.rejected_topic!r} takes no record: {error.str()}")
    _log.error(
        "record_set_aside",
        query=settings.query_name,
        topic=settings.input_topic,
        partition=partition,
        offset=offset,
        timestamp_ms=time_ms,
    )


def go_on_behind(files: CheckpointFiles, settings: Settings, at: Offsets) -> None:
    """Has the query begin at these offsets, by partition.

    Raises:
        CheckpointError: the file system refuses.
    """
    go_on_at(files, settings, at, "were decided, or set aside, by a search")
    kept = INPUT.read(files)
    if kept and CheckpointReader(files, settings.input_topic).newest() is None:
        INPUT.write(files, kept.moved(at))


def _read(settings: Settings, partition: int, offset: int) -> Any | None:
    try:
        records = read_records(settings, settings.input_topic, {partition: offset}, {partition: offset + 1})
        return next(iter(next(records, [])), None)
    except FraudFilterError:
        return None


def _produce(settings: Settings, key: bytes | None, value: bytes | None, headers: Headers) -> KafkaError | None:
    """Why the topic did not take the record."""
    failed: list[KafkaError | None] = [KafkaError(KafkaError._TIMED_OUT)]

    def delivered(error: KafkaError | None, _: Any) -> None:
        failed[0] = error

    try:
        producer = Producer(librdkafka_config(settings))
        producer.produce(settings.rejected_topic, value, key, headers=headers, on_delivery=delivered)
        producer.flush(settings.kafka_timeout_s)
    except KafkaException as error:
        raised: KafkaError = error.args[0]
        return raised
    return failed[0]
