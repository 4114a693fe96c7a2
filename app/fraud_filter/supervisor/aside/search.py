"""Finds the records that end the query: ranges of its input go through the query's own expressions into its own sink.

A range that passes is decided by that, so the search is no time lost.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from fraud_filter.checkpoint.progress import Offsets
from fraud_filter.config import Settings
from fraud_filter.kafka.offsets import first_since, first_time_ms
from fraud_filter.query.preflight import Inputs
from fraud_filter.rules.features import reach_ms
from fraud_filter.supervisor.aside.narrowing import Narrowing, Span
from fraud_filter.supervisor.failures import Reason, RestartableError, cause
from fraud_filter.supervisor.java import Java
from fraud_filter.supervisor.resume.losses import Bounds
from fraud_filter.supervisor.signals import Stop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)
#: After so many ends at the same place a record may be the reason.
_ENDS = 2
#: What a record may cause.
_BY_RECORD: frozenset[Reason] = frozenset(("query-failed", "query-ended", "java-gone", "stalled", "start-hung"))
#: What no record causes, by the names of Java's exceptions.
_ELSEWHERE = re.compile(
    r"(Authentication|Authorization|Timeout|UnknownTopicOrPartition|NotEnoughReplicas\w*|NotLeaderOrFollower|Disconnect|"
    r"Network|Storage|Ssl|Interrupted|UnknownHost|Config|AccessDenied|NoSuchFile|ClassNotFound)\w*(Exception|Error)"
    r"|No space left"
)
#: Records before the place, which passed once, that are tried where no other ones pass.
_CONTROL = 10
#: Seconds that a range may take: a record must not hold the search either.
_MOST_S = 120.0


class Search:
    """Counts the ends of queries at the same place, and searches once they repeat; it outlives Java."""

    def __init__(self, settings: Settings, stop: Stop) -> None:
        self.settings, self._stop = settings, stop
        self._at: Offsets | None = None
        self._ends = 0
        self._narrowing: Narrowing | None = None
        self._trying = self._advanced = self._reads = False
        #: Partitions of which a try took more memory than there is, or Java died.
        self.heavy: set[int] = set()

    def start_at(self, at: Offsets) -> bool:
        """A query is to start at these offsets: whether a search comes before it."""
        if at != self._at:
            self._at, self._ends, self._narrowing, self._trying = dict(at), 0, None, False
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

    def run(self, spark: SparkSession, java: Java, inputs: Inputs, topic_id: str, bounds: Bounds) -> Narrowing | None:
        """Searches from where the query is to start; `bounds` are the first and the end offset by partition.

        Returns:
            What came of it; None where that is nothing, or somebody wishes us to stop.

        Raises:
            RestartableError: the reason is none of the records.
            Exception: Java is gone; the search goes on in the next one.
        """
        at = self._at or {}
        if self._narrowing is None:
            _log.warning("event=searching_record query=%s ends=%d", self.settings.query_name, self._ends)
            self._narrowing = Narrowing(at, {number: end for number, (_, end) in bounds.items()})
            self.heavy = set()
        narrowing = self._narrowing
        if self._trying:  # Java died of it
            self._note_heavy(narrowing.next() or [])
            self._note(passed=False)
        while not self._stop.requested and (spans := narrowing.next()):
            self._trying = True
            passed = self._try(spark, java, inputs, topic_id, spans)
            if not passed and inputs.rules.features and _is_single(spans):  # what it looks back at may be the reason
                passed = self._try(spark, java, inputs, topic_id, spans, looks_back=False)
            self._note(passed=passed)
            if narrowing.is_unproven:
                before = [Span(n, max(low, at[n] - _CONTROL), at[n]) for n, (low, _) in bounds.items() if n in at]
                before = [span for span in before if span.start < span.end]
                if before and self._try(spark, java, inputs, topic_id, before):
                    narrowing.vouch()
        if self._stop.requested:
            return None
        self._narrowing, self._ends = None, 0
        _log.warning("event=searched_record query=%s found=%d", self.settings.query_name, len(narrowing.found))
        return None if narrowing.is_vain or narrowing.is_unproven else narrowing

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
        topic_id: str,
        spans: list[Span],
        *,
        looks_back: bool = True,
    ) -> bool:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        without = self._narrowing.failing if self._narrowing else []
        try:
            with java.killed_after(_MOST_S):
                decide_range(spark, inputs, self.settings, topic_id, spans, without, looks_back=looks_back)
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


def _is_single(spans: list[Span]) -> bool:
    return len(spans) == 1 and spans[0].end - spans[0].start == 1


def decide_range(
    spark: SparkSession,
    inputs: Inputs,
    settings: Settings,
    topic_id: str,
    spans: list[Span],
    without: list[tuple[int, int]],
    *,
    looks_back: bool = True,
) -> None:
    """Decides the records of ranges, one of a partition, and writes what is to be written of them.

    Args:
        without: partition and offset of records that are not read.
        looks_back: whether features look at records before the ranges.

    Raises:
        PySparkException, Py4JError: a record can't be decided, or something is away.
    """
    from fraud_filter.query import decide as query
    from fraud_filter.query import sinks, sources

    wanted = {span.partition: (span.start, span.end) for span in spans}
    read = dict(wanted)
    if looks_back:
        read = {number: (_history(settings, inputs, number, *at), at[1]) for number, at in wanted.items()}
    records = [sources.read_range(spark, settings, layer) for layer in layers(read, without)]
    decisions = query.decide(
        reduce(lambda one, other: one.union(other), records), inputs.schema, inputs.rules, settings,
        topic_id, inputs.model, since={number: start for number, (start, _) in wanted.items()},
    )  # fmt: skip
    sinks.write_range(decisions, settings)


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


def _history(settings: Settings, inputs: Inputs, partition: int, start: int, end: int) -> int:
    """The first offset that features of records from `start` on look at."""
    if not inputs.rules.features:
        return start
    first_ms = first_time_ms(settings, partition, start, end)
    if first_ms is None:
        return start
    since_ms = first_ms - reach_ms(inputs.rules.features)
    return min(first_since(settings, [partition], since_ms).get(partition, start), start)
