"""Measures end-to-end latency from the output topics, whatever mode the query runs in.

The latency of a record is its append time minus its payment's, both stamped by the brokers (LogAppendTime), so it does
not depend on when the probe reads it. Kafka's times are whole milliseconds: read values as 0.5 ms low on average.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaException

from fraud_filter.config import Settings, output_topics
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.admin import require_append_time, wrong_timestamps
from fraud_filter.kafka.consumer import find_bounds, find_partitions, follow_records, has_passed, open_consumer
from fraud_filter.kafka.refusals import describe_error
from fraud_filter.metrics.catalogue import (
    APPROVED,
    DUPLICATE,
    FLAGGED,
    LAST_OUTPUT,
    LATE_WRITES,
    NEGATIVE_LATENCY,
    SCORE,
    TRUNCATED,
    UNREADABLE,
)
from fraud_filter.metrics.probe_metrics import ProbeMetrics
from fraud_filter.metrics.server import MetricsServer, Registry
from fraud_filter.modes import MODES
from fraud_filter.probe.tally import ProbeSnapshot, SeenOffsets, Tally
from fraud_filter.records import Source, read_source
from fraud_filter.schema import APPROVE, FLAG, REJECT, RULES_FIELD
from fraud_filter.schema import SCORE as SCORE_FIELD
from fraud_filter.stop_signals import stop_event
from fraud_filter.text.logs import get_logger

_COUNTED_AS = {FLAG: "flagged", APPROVE: "approved", REJECT: "rejected"}
#: How soon the end of the reading thread is noticed, in seconds.
_LOOK_S = 1.0


def run_probe(
    settings: Settings,
    *,
    interval_s: float,
    seconds: float | None,
    from_beginning: bool,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Runs the probe until SIGTERM, SIGINT, or for `seconds` seconds; `say` prints a line every `interval_s` seconds.

    Returns:
        The final figures.

    Raises:
        UsageError: no broker, a missing topic, a port in use.
        FraudFilterError: the output topics could not be read any longer.
    """
    registry = Registry()
    probe = Probe(settings, registry, from_beginning=from_beginning)
    server = MetricsServer(registry, settings.metrics_host, settings.probe_port, "probe_port")
    try:
        with stop_event() as stop, probe:
            say(
                f"event=probe_started mode={settings.mode} metrics=http://{settings.metrics_host}:{server.port}/metrics"
            )
            _report(probe, settings, stop, interval_s, seconds, say)
    finally:
        server.stop()
    final = probe.snapshot()
    say(_line("probe_stopped", settings, final))
    return {
        "mode": settings.mode,
        "query": settings.query_name,
        **final.to_dict(),
        "distribution": probe.distribution(),
    }


def _report(
    probe: Probe,
    settings: Settings,
    stop: threading.Event,
    interval_s: float,
    seconds: float | None,
    say: Callable[[str], None],
) -> None:
    """A line an interval, with the figures of that interval, until it is time to stop."""
    now = time.monotonic()
    end, line_at = now + (seconds if seconds is not None else float("inf")), now + interval_s
    while not stop.wait(max(0.0, min(line_at, end, now + _LOOK_S) - now)) and time.monotonic() < end:
        now = time.monotonic()
        if now >= line_at:
            say(_line("probe", settings, probe.lap(), interval_s))
            line_at += interval_s
        else:
            probe.raise_error()


def _line(event: str, settings: Settings, figures: ProbeSnapshot, interval_s: float | None = None) -> str:
    parts = {"event": event, "mode": settings.mode, "query": settings.query_name}
    if interval_s is not None:
        parts["records_per_second"] = f"{figures.decisions / interval_s:.1f}"
    approved = ["approved"] if settings.emit == "all" else []
    counts = ("flagged", *approved, "rejected", "duplicates", "unreadable", "negative")
    latencies = ("p50_ms", "p90_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms", "within_objective")
    parts |= {name: str(getattr(figures, name)) for name in (*counts, *latencies) if getattr(figures, name) is not None}
    return " ".join(f"{name}={value}" for name, value in parts.items())


#: A fetch is answered as soon as there is a record; this is how long an idle one waits.
_POLL_MS = 100

_log = get_logger(__name__)


class Probe:
    """Reads the topics of decisions in a thread of its own; `with Probe(settings) as probe` starts it.

    Figures may be asked for from any thread. When the reading thread died, asking raises what it died of
    (FraudFilterError).
    """

    def __init__(self, settings: Settings, registry: Registry | None = None, *, from_beginning: bool = False) -> None:
        """`registry` receives the Prometheus metrics; `from_beginning` reads all retained records."""
        self._settings = settings
        self._from_beginning = from_beginning
        objective_ms = settings.latency_objective_ms or MODES[settings.mode].objective_ms
        self._metrics = ProbeMetrics(
            registry or Registry(),
            mode=settings.mode,
            query=settings.query_name,
            objective_ms=objective_ms,
        )
        self._lock = threading.Lock()
        self._whole, self._lap = Tally(objective_ms), Tally(objective_ms)
        self._seen: dict[tuple[str, int], SeenOffsets] = {}  # by source topic and partition
        #: The newest writer of decisions on a topic's payments, and when its first one was appended.
        self._writers: dict[str, tuple[int, int]] = {}
        self._last_seen: float | None = None
        self._stopping = threading.Event()
        self._error: FraudFilterError | None = None
        self._thread: threading.Thread | None = None
        self._positions: dict[str, dict[int, int]] = {}

    def start(self) -> None:
        """Finds the ends of the output topics and begins to read there.

        Raises:
            UsageError: no broker answers within `kafka_timeout_s` seconds, a topic is missing, or one is not stamped
                with LogAppendTime.
        """
        with open_consumer(self._settings) as consumer:
            inputs = ("input_topic",) if self._settings.source == "kafka" else ()
            topics = find_partitions(consumer, self._settings, (*inputs, *output_topics(self._settings)))
            require_append_time(self._settings, list(topics))
            topics.pop(self._settings.input_topic, None)
            for topic, partitions in topics.items():
                bounds = find_bounds(consumer, self._settings, topic, partitions)
                self._positions[topic] = {
                    partition: low if self._from_beginning else high for partition, (low, high) in bounds.items()
                }
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name="probe", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops reading; the figures stay. Does nothing when it was not started."""
        self._stopping.set()
        if self._thread:
            self._thread.join()
            self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def snapshot(self) -> ProbeSnapshot:
        """What was seen since the start."""
        return self._snapshot(self._whole)

    def has_passed(self, offsets: Mapping[int, int]) -> bool:
        """Whether a decision about a payment at or after each of the input's `offsets`, by partition, was seen."""
        return has_passed(self.snapshot().source_offsets, offsets)

    def lap(self) -> ProbeSnapshot:
        """What was seen since the last `lap`, or since the start; begins the next one."""
        return self._snapshot(self._lap, reset=True)

    def distribution(self) -> dict[int, int]:
        """The latencies since the start: milliseconds -> how many records, in ascending order."""
        self.raise_error()
        with self._lock:
            return self._whole.latencies.distribution()

    def _snapshot(self, tally: Tally, *, reset: bool = False) -> ProbeSnapshot:
        self.raise_error()
        with self._lock:
            age_s = None if self._last_seen is None else time.monotonic() - self._last_seen
            newest = {
                partition: seen.newest
                for (topic, partition), seen in sorted(self._seen.items())
                if topic == self._settings.input_topic
            }
            result = tally.snapshot(age_s, newest)
            if reset:
                tally.reset()
            return result

    def raise_error(self) -> None:
        """Raises what the reading thread died of (FraudFilterError); does nothing while all is well."""
        if self._error:
            raise self._error

    def _run(self) -> None:
        try:
            with open_consumer(self._settings, fetch_wait_max_ms=_POLL_MS, auto_offset_reset="earliest") as consumer:
                names = output_topics(self._settings)
                for batch in follow_records(consumer, self._settings, names, self._positions, self._stopping):
                    with self._lock:
                        for message in batch:
                            self._take(message)
        except FraudFilterError as error:
            self._error = error
        except KafkaException as error:
            self._error = FraudFilterError(f"the probe can't read the output topics: {describe_error(error)}")
        except Exception as error:
            self._error = FraudFilterError(f"the probe failed: {error!r}")
            _log.exception("probe_failed", query=self._settings.query_name)

    def _take(self, message: Any) -> None:
        kind, appended_ms = message.timestamp()
        if kind != TIMESTAMP_LOG_APPEND_TIME:
            raise wrong_timestamps(message.topic(), "records that their producers stamped")
        self._last_seen = time.monotonic()
        self._metrics.of(LAST_OUTPUT).set(appended_ms / 1000)
        source = read_source(message.headers())
        if source is None:
            self._metrics.of(UNREADABLE).inc()
            for tally in (self._whole, self._lap):
                tally.counts["unreadable"] += 1
            return
        if source.decision == FLAG:
            self._metrics.of(FLAGGED).inc()
            for feature in source.truncated:
                self._metrics.bounded(TRUNCATED, feature).inc()
            rules, score = read_flagged(message.value())
            self._metrics.count_matches(rules, source.version)
            if score is not None:
                self._metrics.bounded(SCORE, source.model).observe(score)
        elif source.decision == APPROVE:
            self._metrics.of(APPROVED).inc()
        else:
            self._metrics.count_rejected(source.reason)
        newest, since_ms = self._writers.get(source.topic, (0, 0))
        if source.writer > newest:
            self._writers[source.topic] = source.writer, appended_ms
        elif 0 < source.writer < newest and appended_ms > since_ms:
            self._metrics.of(LATE_WRITES).inc()
        is_repeated = self._offsets(source).add(source.offset, source.timestamp_ms)
        self._record(source.decision, is_repeated, appended_ms - source.timestamp_ms)

    def _offsets(self, source: Source) -> SeenOffsets:
        place = source.topic, source.partition
        if place not in self._seen:
            self._seen[place] = SeenOffsets()
        return self._seen[place]

    def _record(self, decision: str, is_repeated: bool, latency_ms: int) -> None:
        """A repeated decision has no latency of its own: its payment was decided before."""
        if is_repeated:
            self._metrics.of(DUPLICATE).inc()
        elif latency_ms < 0:
            self._metrics.of(NEGATIVE_LATENCY).inc()
        else:
            self._metrics.observe_latency(latency_ms)
        for tally in (self._whole, self._lap):
            tally.counts[_COUNTED_AS[decision]] += 1
            if is_repeated or latency_ms < 0:
                tally.counts["duplicates" if is_repeated else "negative"] += 1
            else:
                tally.record(latency_ms)


def read_flagged(value: bytes | None) -> tuple[list[str], float | None]:
    """The rules that a flagged record names, and its score from 0 to 1; none and None where they can't be read.

    Others may write to the topic, so anything may be in the record.
    """
    try:
        record = json.loads(value or b"")
    except (ValueError, RecursionError):
        return [], None
    if not isinstance(record, dict):
        return [], None
    rules, score = record.get(RULES_FIELD), record.get(SCORE_FIELD)
    named = [rule for rule in rules if isinstance(rule, str)] if isinstance(rules, list) else []
    return named, score if isinstance(score, float | int) and 0 <= score <= 1 else None
