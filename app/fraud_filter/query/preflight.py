"""What must hold before a query starts. Every refusal is in words, with the numbers that decided it.

`check_inputs` needs no Spark, so that bad input is told within seconds; `check_slots` and `check_plan` ask the
running session.
"""

from __future__ import annotations

import logging
import os
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fraud_filter.config import Settings, env_name
from fraud_filter.errors import UsageError
from fraud_filter.modes import MODES, Mode
from fraud_filter.query.record_size import most_written_bytes
from fraud_filter.rules.ruleset import RuleSet, load_rules
from fraud_filter.schema import PaymentSchema, load_schema
from fraud_filter.spark.executors import count_slots

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger(__name__)

_SOURCES = {"StreamingRelationV2", "StreamingDataSourceV2Relation", "SubqueryAlias", "View"}
_ADVICE = {
    "Aggregate": "an aggregation (groupBy, count, distinct)",
    "EventTimeWatermark": "a watermark (withWatermark)",
    "Deduplicate": "a deduplication (dropDuplicates)",
    "DeduplicateWithinWatermark": "a deduplication (dropDuplicatesWithinWatermark)",
    "Join": "a join",
    "Window": "a window function",
    "Sort": "a sort",
    "Union": "a union",
    "GlobalLimit": "a limit",
    "LocalLimit": "a limit",
}


@dataclass(frozen=True)
class Inputs:
    """What a query is made of, checked: `partitions` counts those of the input."""

    mode: Mode
    schema: PaymentSchema
    rules: RuleSet
    partitions: int


def check_inputs(settings: Settings) -> Inputs:
    """Checks everything that can be checked without Spark.

    Raises:
        UsageError: the mode can't use the source or sink, the schema or the rules are wrong, no broker answers, a
            topic is missing, or the checkpoint can't be written.
    """
    mode = MODES[settings.mode]
    _check_pair(settings, mode)
    _check_interval(settings, mode)
    schema = load_schema(settings.payment_schema)
    rules = load_rules(settings.rules, schema)
    if not schema.required:
        raise UsageError(f"setting payment_schema: {settings.payment_schema} needs at least one NOT NULL field")
    _check_checkpoint(settings)
    _check_port(settings)
    partitions = settings.rate_partitions if settings.source == "rate" else 0
    if "kafka" in (settings.source, settings.sink):
        partitions = count_partitions(settings) or partitions
    return Inputs(mode, schema, rules, partitions)


def check_slots(spark: SparkSession, inputs: Inputs, settings: Settings) -> int:
    """Checks that each partition gets a task slot where the mode holds one task per partition permanently.

    Returns:
        The task slots that were granted.

    Raises:
        UsageError: fewer slots than partitions; some partitions would never be read, without a word.
    """
    slots = count_slots(spark)
    if lacks_slots(inputs, slots):
        local = settings.spark_master.startswith("local")
        remedy = f"set SPARK_MASTER=local[{inputs.partitions}]" if local else "raise SPARK_WORKER_CORES or add workers"
        raise UsageError(
            f"{settings.input_topic} has {inputs.partitions} partitions, the application was granted {slots} task "
            f"slots: in {inputs.mode.name} mode {inputs.partitions - slots} partitions would never be read; {remedy}, "
            "or read a topic with fewer partitions"
        )
    return slots


def lacks_slots(inputs: Inputs, slots: int) -> bool:
    """Whether the mode holds a task slot for each partition, and these are too few."""
    return inputs.mode.holds_tasks and slots < inputs.partitions


def check_plan(decisions: DataFrame, mode: Mode) -> None:
    """Refuses operators that the low-latency modes can't run, before Spark does so with a stack trace.

    Raises:
        UsageError: names the operator and the modes that can run it.
    """
    if mode.operators is None:
        return
    for node in _plan_nodes(decisions._jdf.queryExecution().analyzed()):
        kind = str(node.getClass().getSimpleName())
        if kind not in mode.operators | _SOURCES:
            raise UsageError(
                f"the query contains {_ADVICE.get(kind, f'the operator {kind}')}, which {mode.name} mode can't run: "
                "it takes each payment by itself; remove it, or set mode (--mode, FRAUD_MODE) to micro-batch"
            )


def _plan_nodes(plan: Any) -> Any:
    yield plan
    children = plan.children()
    for index in range(children.size()):
        yield from _plan_nodes(children.apply(index))


def _check_pair(settings: Settings, mode: Mode) -> None:
    for kind, chosen, supported in (
        ("source", settings.source, mode.sources),
        ("sink", settings.sink, mode.sinks),
    ):
        if chosen not in supported:
            able = [other.name for other in MODES.values() if chosen in getattr(other, f"{kind}s")]
            raise UsageError(
                f"setting {kind} (--{kind}, {env_name(kind)}): {chosen!r} does not work in {mode.name} mode; it takes "
                f"{', '.join(sorted(supported))}, and {chosen!r} works in {', '.join(able)}"
            )


def _check_interval(settings: Settings, mode: Mode) -> None:
    interval = mode.interval
    if interval.is_too_short(settings):
        name = interval.setting
        raise UsageError(
            f"setting {name} (--{name.replace('_', '-')}, {env_name(name)}): {getattr(settings, name)!r} is too short; "
            f"{interval.advice}"
        )


def _check_checkpoint(settings: Settings) -> None:
    """A local checkpoint is tried here; any other file system is tried by Spark at the start of the query."""
    path = settings.checkpoint_directory
    if path is None:
        return
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".writable-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UsageError(
            f"setting checkpoint (--checkpoint, FRAUD_CHECKPOINT): {settings.checkpoint!r} can't be written: "
            f"{error.strerror or error}; give a directory that this user may write"
        ) from None


def _check_port(settings: Settings) -> None:
    if not settings.ui_port:
        return
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Spark's: closed connections don't count
        try:
            probe.bind(("127.0.0.1", settings.ui_port))
        except OSError as error:
            raise UsageError(
                f"setting ui_port (--ui-port, FRAUD_UI_PORT): port {settings.ui_port} can't be used: {error.strerror}; "
                "give a free one, or 0 for no page"
            ) from None


def count_partitions(settings: Settings) -> int:
    """The number of partitions of the input topic, 0 when the source is not Kafka.

    Raises:
        UsageError: no broker answers, or one of the topics does not exist.
    """
    from fraud_filter.kafka.topics import admin_client

    wanted = []
    if settings.source == "kafka":
        wanted.append(("input_topic", settings.input_topic))
    if settings.sink == "kafka":
        wanted += [("flagged_topic", settings.flagged_topic), ("rejected_topic", settings.rejected_topic)]
    with admin_client(settings) as admin:
        found = {topic["name"]: topic for topic in admin.describe_topics([name for _, name in wanted])}
        for setting, name in wanted:
            if name not in found or found[name]["error_code"] != 0:
                raise UsageError(
                    f"setting {setting} (--{setting.replace('_', '-')}, {env_name(setting)}): the topic {name!r} does "
                    f"not exist at {settings.kafka_bootstrap_servers}; create it with `fraud-filter topics`"
                )
            if setting != "input_topic":
                _warn_of_small_topic(admin, settings, name)
    return len(found[settings.input_topic]["partitions"]) if settings.source == "kafka" else 0


def _warn_of_small_topic(admin: Any, settings: Settings, name: str) -> None:
    """A record that the topic does not take ends the query, and does so again after each restart."""
    from kafka.admin import ConfigResource
    from kafka.errors import KafkaError

    needed = most_written_bytes(settings)
    try:
        configs = admin.describe_configs([ConfigResource("TOPIC", name)], config_filter="all")["topic"][name]
        present = int(configs["max.message.bytes"]["value"])
    except (KafkaError, KeyError, TypeError, ValueError) as error:  # it may not be ours to see
        _log.warning('event=topic_limit_unknown topic=%s reason="%s"', name, error)
        return
    if present < needed:
        _log.warning(
            "event=topic_takes_too_little topic=%s max_message_bytes=%d needed=%d "
            'action="set max.message.bytes=%d on the topic, or lower max_record_bytes"',
            name, present, needed, needed,
        )  # fmt: skip
