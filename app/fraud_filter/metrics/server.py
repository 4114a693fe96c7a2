"""Every metric definition, and the /metrics endpoint. Prometheus types stop here; the rest calls plain methods."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    start_http_server,
)
from prometheus_client.core import CounterMetricFamily, Metric

from fraud_filter import schema as layout
from fraud_filter.errors import UsageError
from fraud_filter.metrics.tally import ProbeSnapshot

Registry = CollectorRegistry

#: Seconds. Fine where the fast modes are (1 to 20 ms), coarse where a backlog shows (up to 60 s).
LATENCY_BUCKETS_S = (
    *(0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.008, 0.01, 0.012, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075),
    *(0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0),
)
#: The only values of the label `reason`; whatever else a record says is counted as `other`.
REJECT_REASONS = (
    *(layout.REASON_EMPTY, layout.REASON_MALFORMED, layout.REASON_MISSING, layout.REASON_WRONG_TYPE),
    *(layout.REASON_TOO_LARGE, layout.REASON_TRAILING, layout.REASON_DUPLICATE, "other"),
)


class GeneratorCounts(Protocol):
    """What `GeneratorMetrics` reads of the generator: numbers of payments since the start."""

    @property
    def sent(self) -> int: ...  # noqa: D102
    @property
    def failed(self) -> int: ...  # noqa: D102
    @property
    def late(self) -> int: ...  # noqa: D102


class ProbeMetrics:
    """What the probe measures, labelled with the execution mode and the name of the query.

    Counters exist from the start, so that a rate can be taken of the first record. `last_output_timestamp_seconds`
    does not exist before there was an output.
    """

    def __init__(self, registry: Registry, *, mode: str, query: str) -> None:
        labels, values = ("mode", "query"), (mode, query)
        self._latency = Histogram(
            "fraud_filter_end_to_end_latency_seconds",
            "Time from the append of a payment to the append of its decision, both on the broker's clock.",
            labels,
            buckets=LATENCY_BUCKETS_S,
            registry=registry,
        ).labels(*values)
        self._flagged = Counter(
            "fraud_filter_flagged_records_total", "Flagged records read, repeated ones too.", labels, registry=registry
        ).labels(*values)
        rejected = Counter(
            "fraud_filter_rejected_records_total",
            "Rejected records read, repeated ones too, by reason.",
            (*labels, "reason"),
            registry=registry,
        )
        self._rejected = {reason: rejected.labels(*values, reason) for reason in REJECT_REASONS}
        self._duplicate = Counter(
            "fraud_filter_duplicate_records_total",
            "Records read whose payment had been decided before.",
            labels,
            registry=registry,
        ).labels(*values)
        self._unreadable = Counter(
            "fraud_filter_unreadable_records_total",
            "Records on the output topics without readable source headers.",
            labels,
            registry=registry,
        ).labels(*values)
        self._negative = Counter(
            "fraud_filter_negative_latency_records_total",
            "Decisions that bear an earlier time than their payment: the brokers' clocks differ.",
            labels,
            registry=registry,
        ).labels(*values)
        self._last_output = Gauge(
            "fraud_filter_last_output_timestamp_seconds",
            "Append time of the newest record on the output topics.",
            labels,
            registry=registry,
        )
        self._labels = values
        self._interval = IntervalLatency(registry, dict(zip(labels, values, strict=True)))

    def count_flagged(self) -> None:
        """One flagged record was read."""
        self._flagged.inc()

    def count_rejected(self, reason: str) -> None:
        """One rejected record was read. `reason` is its reject.reason header; only the part before ':' counts."""
        kind = reason.partition(":")[0]
        self._rejected[kind if kind in self._rejected else "other"].inc()

    def count_duplicate(self) -> None:
        """A payment was decided again."""
        self._duplicate.inc()

    def count_unreadable(self) -> None:
        """A record had no readable source headers."""
        self._unreadable.inc()

    def count_negative(self) -> None:
        """A latency was below zero."""
        self._negative.inc()

    def observe_latency(self, latency_ms: int) -> None:
        """A payment was decided for the first time, after `latency_ms` milliseconds."""
        self._latency.observe(latency_ms / 1000)

    def set_interval(self, figures: ProbeSnapshot) -> None:
        """The latencies of the interval that has just ended."""
        self._interval.figures = figures

    def set_last_output(self, timestamp_ms: int) -> None:
        """The newest output's append time, in milliseconds since 1970."""
        self._last_output.labels(*self._labels).set(timestamp_ms / 1000)


class IntervalLatency:
    """Exact percentiles of the last interval, beside the histogram, whose buckets make its own approximate.

    A summary without sum and count, which are the histogram's; `quantile="1"` is the maximum. A quantile is NaN when
    there was no decision to measure in the interval, as in every client's summaries.
    """

    def __init__(self, registry: Registry, labels: dict[str, str]) -> None:
        """Without a sample until `figures` are set."""
        self.figures: ProbeSnapshot | None = None
        self._labels = labels
        registry.register(self)  # a collector by its `collect`

    def collect(self) -> Iterator[Metric]:
        """Called by the registry at each scrape."""
        name = "fraud_filter_interval_latency_seconds"
        summary = Metric(name, "Latency of the decisions of the last interval: exact quantiles.", "summary")
        if figures := self.figures:
            for quantile, latency_ms in (
                ("0.5", figures.p50_ms),
                ("0.95", figures.p95_ms),
                ("0.99", figures.p99_ms),
                ("1", figures.max_ms),
            ):
                value = float("nan") if latency_ms is None else latency_ms / 1000
                summary.add_sample(name, {**self._labels, "quantile": quantile}, value)
        yield summary


class GeneratorMetrics:
    """What the generator has done, read from it at each scrape, so that sending pays nothing for it."""

    def __init__(self, registry: Registry, source: GeneratorCounts) -> None:
        self._source = source
        registry.register(self)  # a collector by its `collect`

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Called by the registry at each scrape."""
        for name, text, value in (
            ("sent", "Payments handed to the Kafka client.", self._source.sent),
            ("failed", "Payments known not to have been delivered.", self._source.failed),
            ("late", "Payments sent more than 10 ms after they were due.", self._source.late),
        ):
            yield CounterMetricFamily(f"fraud_filter_generator_{name}_records", text, value=value)


class MetricsServer:
    """The /metrics endpoint of one registry, served by a thread of its own until `stop`.

    Raises:
        UsageError: the address can't be used.
    """

    def __init__(self, registry: Registry, host: str, port: int, setting: str) -> None:
        """`port` 0 takes a free one; `setting` names the setting that gave the port, for the error."""
        disable_created_metrics()  # type: ignore[no-untyped-call] # a second series a counter, of use to nobody
        ProcessCollector(registry=registry)  # the process' own CPU, memory and file descriptors
        name = f"setting {setting} (--{setting.replace('_', '-')}): "
        try:
            self._server, self._thread = start_http_server(port, addr=host, registry=registry)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                reason = f"port {port} of {host} is in use: stop what listens there, or choose another (0: a free one)"
            else:
                reason = f"{host}:{port} can't be listened on: {error.strerror or error}"
            raise UsageError(name + reason) from None
        self.port = int(self._server.server_port)

    def stop(self) -> None:
        """Stops serving and frees the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
