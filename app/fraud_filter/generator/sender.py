"""Sends the records of a source to Kafka when they are due, and reports: an open loop that no broker slows down."""

from __future__ import annotations

import json
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from hdrh.histogram import HdrHistogram
from prometheus_client.core import Metric

from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from fraud_filter.generator.source import Batch, Source
from fraud_filter.kafka.admin import find_topics, open_admin
from fraud_filter.kafka.client import librdkafka_config
from fraud_filter.kafka.refusals import no_broker, no_topic
from fraud_filter.metrics.catalogue import FAILED, LATE, SENT
from fraud_filter.metrics.server import Registry
from fraud_filter.schema import HEADER_LABEL, LEGITIMATE, PREFIX_BYTES

#: A record sent later than this after it was due counts as late.
LATE_MS = 10


@dataclass(frozen=True)
class Lateness:
    """How long after it was due a record was handed to the Kafka client, in milliseconds."""

    p50: float
    p99: float
    max: float


@dataclass(frozen=True)
class Report:
    """One run. Rates are payments/s from when the first record was due until the last one was due (intended) or
    sent (kept); None where that is no interval.

    `failed` counts records that the brokers did not confirm; `error` is the first reason given. `flagged` and
    `malformed` count what was made so on purpose; `flagged` is None, not known, for a replayed file. `fraud` counts
    payments of labelled fraud; None where nothing is labelled.
    """

    topic: str
    seed: int | None
    duration_s: float
    intended_rate: float | None
    kept_rate: float | None
    sent: int
    delivered: int
    failed: int
    error: str | None
    flagged: int | None
    malformed: int
    late: int
    lateness_ms: Lateness
    fraud: int | None = None

    def text(self) -> str:
        """A few lines for a person."""
        lateness = self.lateness_ms
        lines = [
            f"records       {self.sent} sent to {self.topic} in {self.duration_s:.1f} s, "
            f"{self.delivered} delivered, {self.failed} failed",
            f"rate          {_per_second(self.kept_rate)} kept, {_per_second(self.intended_rate)} intended",
            f"lateness      p50 {lateness.p50:.2f} ms, p99 {lateness.p99:.2f} ms, max {lateness.max:.2f} ms; "
            f"{self.late} sent more than {LATE_MS} ms late",
            f"made flagged  {'not known' if self.flagged is None else self.flagged}",
            f"malformed     {self.malformed}",
        ]
        if self.fraud is not None:
            lines.append(f"fraud         {self.fraud}, in the header {HEADER_LABEL!r}")
        if self.seed is not None:
            lines.append(f"seed          {self.seed}")
        if self.error is not None:
            lines.append(f"first error   {self.error}")
        return "\n".join(lines)

    def json(self) -> str:
        """One JSON object."""
        return json.dumps(asdict(self), indent=2)


def _per_second(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.1f}/s"


#: Header of every generated record: when it was due, in microseconds since 1970, as decimal ASCII. A latency
#: measured from there includes what the sender was late (no coordinated omission).
HEADER_GENERATED_AT = "generated.at"

#: Partitions that are added to the topic get payments after this time at most; the client's default is 5 minutes.
_REFRESH_MS = 10_000

#: From the call of `run` to the first due record: long enough to have it made by then.
_LEAD_S = 0.2

#: Shortest sleep: at 5,000/s one wake-up then serves three payments, for a fraction of the CPU time.
_SHORTEST_SLEEP_S = 0.0005

#: Longest sleep and wait: a stop is noticed and delivery errors are collected that often.
_LONGEST_SLEEP_S = 0.1


@dataclass
class Tally:
    """What has happened so far; may be read from another thread.

    `sent` were handed to the Kafka client; `failed` are known not to have been delivered; `late` were sent more than
    10 ms after they were due.
    """

    sent: int = 0
    failed: int = 0
    error: str | None = None
    flagged: int | None = 0
    malformed: int = 0
    fraud: int | None = None
    late: int = 0
    first_due_s: float = 0.0
    last_due_s: float = 0.0
    last_sent_s: float = 0.0
    # One microsecond to one day, three digits.
    lateness_us: Any = field(default_factory=lambda: HdrHistogram(1, 86_400_000_000, 3))

    def fail(self, error: KafkaError) -> None:
        """A record was not delivered."""
        self.failed += 1
        self.error = self.error or error.str()


class Sender:
    """Sends a source's records to the input topic and reports. One object is one run.

    >>> report = Sender(settings, MadePayments.for_settings(settings, Steady(100), seed=1), count=500).run()
    """

    def __init__(
        self,
        settings: Settings,
        source: Source,
        *,
        count: int | None = None,
        seconds: float | None = None,
    ) -> None:
        """Connects to the brokers.

        Args:
            settings: brokers and input topic.
            source: what to send; ends the run when it ends.
            count: maximum records to send.
            seconds: nothing that is due later than this after the start is sent.

        Raises:
            UsageError: `count` or `seconds` is not above 0, no broker answers within `kafka_timeout_s` seconds, or
                the input topic does not exist.
        """
        if count is not None and count < 1:
            raise UsageError(f"--count {count} is not accepted: give a number of records, at least 1")
        if seconds is not None and not seconds > 0:
            raise UsageError(f"--seconds {seconds:g} is not accepted: give seconds above 0")
        self._source = source
        self._count = count
        self._seconds = seconds
        self._topic = settings.input_topic
        # No registry gives the id 0.
        self._prefix = bytes(PREFIX_BYTES) if settings.record_format == "json-registry" else b""
        self._timeout_s = settings.kafka_timeout_s
        self.tally = Tally()
        self._producer = _connect(settings, self._on_delivery_error)

    def run(self, stop: threading.Event | None = None) -> Report:
        """Sends until the source, the count or the time ends, or `stop` is set; waits for the deliveries.

        What the brokers have not confirmed `kafka_timeout_s` seconds after the last record counts as failed.

        Raises:
            UsageError: the source can't go on (a wrong row of a file); earlier records are delivered.
        """
        stop = stop or threading.Event()
        began_s = time.perf_counter()
        start_s = began_s + _LEAD_S
        start_us = time.time_ns() // 1000 + round(_LEAD_S * 1e6)
        try:
            self._send_all(self._source.batches(start_us // 1000), start_s, start_us, stop)
        finally:
            unconfirmed = self._producer.flush(self._timeout_s)
            self.tally.failed += unconfirmed
            if unconfirmed:
                self._producer.purge()  # or the client would go on trying for as long as this process lives
        return self._report(time.perf_counter() - began_s)

    def _send_all(self, batches: Iterator[Batch], start_s: float, start_us: int, stop: threading.Event) -> None:
        for batch in batches:
            size = self._allowed(batch)
            if not self._send(batch.first(size), start_s, start_us, stop):
                return
            if size < len(batch.values) or self.tally.sent == self._count:
                return

    def _allowed(self, batch: Batch) -> int:
        """How many records of the batch the count and the time still allow."""
        size = len(batch.values)
        if self._count is not None:
            size = min(size, self._count - self.tally.sent)
        if self._seconds is not None:
            size = min(size, int(np.searchsorted(batch.due_s, self._seconds)))
        return size

    def _send(self, batch: Batch, start_s: float, start_us: int, stop: threading.Event) -> bool:
        """Sends the records as they become due; returns False when it was stopped before the last one."""
        due_s: list[float] = batch.due_s.tolist()
        stamps = [b"%d" % stamp for stamp in (start_us + batch.due_s * 1e6).astype(np.int64).tolist()]
        done = 0
        while done < len(due_s) and not stop.is_set():
            self._producer.poll(0)
            now_s = time.perf_counter() - start_s
            if due_s[done] > now_s:
                time.sleep(min(max(due_s[done] - now_s, _SHORTEST_SLEEP_S), _LONGEST_SLEEP_S))
                continue
            for index in range(done, bisect_right(due_s, now_s, done)):
                label = batch.labels[index] if batch.labels else None
                if not self._produce(batch.keys[index], batch.values[index], stamps[index], label, stop):
                    break
                self._note(due_s[index], time.perf_counter() - start_s)
                done = index + 1
        if batch.flagged is None or self.tally.flagged is None:
            self.tally.flagged = None
        else:
            self.tally.flagged += int(batch.flagged[:done].sum())
        self.tally.malformed += int(batch.malformed[:done].sum())
        if batch.labels is not None:
            fraud = sum(label not in (None, LEGITIMATE) for label in batch.labels[:done])
            self.tally.fraud = (self.tally.fraud or 0) + fraud
        return done == len(due_s)

    def _produce(
        self, key: bytes | None, value: bytes | None, stamp: bytes, label: bytes | None, stop: threading.Event
    ) -> bool:
        """Hands one record to the client, waiting while its queue is full; False when stopped meanwhile."""
        value = None if value is None else self._prefix + value
        headers = [(HEADER_GENERATED_AT, stamp)] + ([(HEADER_LABEL, label)] if label else [])
        while True:
            try:
                self._producer.produce(self._topic, value, key, headers=headers)
            except BufferError:
                if stop.is_set():
                    return False
                self._producer.poll(_LONGEST_SLEEP_S)
            except KafkaException as error:  # refused by the client, such as a record that is too large
                self.tally.fail(error.args[0])
                return True
            else:
                return True

    def _note(self, due_s: float, sent_s: float) -> None:
        tally = self.tally
        late_us = (sent_s - due_s) * 1e6
        tally.lateness_us.record_value(max(1, round(late_us)))
        tally.late += late_us > LATE_MS * 1000
        if tally.sent == 0:
            tally.first_due_s = due_s
        tally.last_due_s, tally.last_sent_s = due_s, sent_s
        tally.sent += 1

    def _on_delivery_error(self, error: KafkaError, message: Message) -> None:  # noqa: ARG002
        self.tally.fail(error)

    def _report(self, duration_s: float) -> Report:
        tally = self.tally
        histogram = tally.lateness_us
        return Report(
            topic=self._topic,
            seed=self._source.seed,
            duration_s=duration_s,
            intended_rate=_rate(tally.sent, tally.last_due_s - tally.first_due_s),
            kept_rate=_rate(tally.sent, tally.last_sent_s - tally.first_due_s),
            sent=tally.sent,
            delivered=tally.sent - tally.failed,
            failed=tally.failed,
            error=tally.error or (f"not confirmed within {self._timeout_s:g} s" if tally.failed else None),
            flagged=tally.flagged,
            malformed=tally.malformed,
            fraud=tally.fraud,
            late=tally.late,
            lateness_ms=Lateness(
                p50=histogram.get_value_at_percentile(50) / 1000,
                p99=histogram.get_value_at_percentile(99) / 1000,
                max=histogram.get_max_value() / 1000,
            ),
        )


class GeneratorMetrics:
    """What the generator has done, read from it at each scrape, so that sending pays nothing for it."""

    def __init__(self, registry: Registry, tally: Tally) -> None:
        self._tally = tally
        registry.register(self)  # a collector by its `collect`

    def collect(self) -> Iterator[Metric]:
        """Called by the registry at each scrape."""
        yield SENT.collected([((), self._tally.sent)])
        yield FAILED.collected([((), self._tally.failed)])
        yield LATE.collected([((), self._tally.late)])


def _rate(count: int, interval_s: float) -> float | None:
    return (count - 1) / interval_s if count > 1 and interval_s > 0 else None


def _connect(settings: Settings, on_error: Any) -> Any:
    """A producer that confirms nothing but errors, and has seen the topic.

    The topic is asked for by another client first: the producer sees it at the address that it was given, and does not
    say that it can't reach the address to which it then has to send.
    """
    if settings.input_topic not in find_topics(open_admin(settings), settings, [settings.input_topic]):
        raise no_topic(settings, "input_topic")
    config = librdkafka_config(settings) | {
        "enable.idempotence": True,  # a retry neither doubles nor reorders payments
        "linger.ms": 0,
        "partitioner": "murmur2_random",  # the Java clients' choice of partition for a key
        "topic.metadata.refresh.interval.ms": _REFRESH_MS,
        "delivery.timeout.ms": 120_000,  # the Java clients' default: a broker's restart is sat out
        "delivery.report.only.error": True,  # 5,000 Python calls a second saved
        "on_delivery": on_error,
    }
    try:
        producer = Producer(config)
        producer.list_topics(settings.input_topic, timeout=settings.kafka_timeout_s)
    except KafkaException as error:
        raise no_broker(settings, error) from None
    return producer
