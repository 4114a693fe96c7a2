"""Sets aside what a search found: written as rejected, and passed over by where the query goes on."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer

from fraud_filter import schema as layout
from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.checkpoint.notes import read_input, write_input
from fraud_filter.checkpoint.progress import CheckpointReader, Offsets
from fraud_filter.checkpoint.repair import go_on_at
from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.client import librdkafka_config
from fraud_filter.kafka.offsets import find_input_bounds, open_consumer, read_records
from fraud_filter.metrics.catalogue import SET_ASIDE
from fraud_filter.metrics.filter_metrics import FilterMetrics
from fraud_filter.monitor.monitor import Place
from fraud_filter.query.preflight import Inputs
from fraud_filter.rules.version import ruling_of
from fraud_filter.supervisor.aside.search import Search
from fraud_filter.supervisor.failures import RestartableError
from fraud_filter.supervisor.java import Java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)
#: For the time of a record that could not be read.
_UNKNOWN_MS = -1

Headers = list[tuple[str, str | bytes | None]]


def set_aside(
    search: Search, spark: SparkSession, java: Java, inputs: Inputs, place: Place, metrics: FilterMetrics
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
    except FraudFilterError as error:
        raise RestartableError("broker-away", str(error)) from None
    found = search.run(spark, java, inputs, place.topic_id, bounds)
    if found is None:
        return False
    own = {layout.HEADER_RULES: ruling_of(inputs.rules, inputs.schema, settings).version}
    own |= {layout.HEADER_TOPIC_ID: place.topic_id} if place.topic_id else {}
    own |= {layout.HEADER_MODEL: inputs.model.version} if inputs.model else {}
    for partition, offset in found.found:
        reject(settings, partition, offset, own, is_heavy=partition in search.heavy)
        metrics.of(SET_ASIDE).inc()
    # A state that has not seen the others' payments reads them.
    behind = {number: offset + 1 for number, offset in found.found} if inputs.rules.features else found.done
    if behind:
        go_on_behind(place.files, settings, place.at | behind)
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
        "event=record_set_aside query=%s topic=%s partition=%d offset=%d timestamp_ms=%d", settings.query_name,
        settings.input_topic, partition, offset, time_ms,
    )  # fmt: skip


def go_on_behind(files: CheckpointFiles, settings: Settings, at: Offsets) -> None:
    """Has the query begin at these offsets, by partition.

    Raises:
        CheckpointError: the file system refuses.
    """
    go_on_at(files, settings, at, "were decided, or set aside, by a search")
    kept = read_input(files)
    if kept and CheckpointReader(files, settings.input_topic).newest() is None:
        write_input(files, kept.moved(at))


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
