"""What must hold before a query starts. Every refusal is in words, with the numbers that decided it.

`check_inputs` needs no Spark, so that bad input is told within seconds; `check_slots` and `check_plan` ask the
running session.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException

from fraud_filter.config import Settings, named, output_topics, refused
from fraud_filter.errors import UsageError
from fraud_filter.kafka.admin import find_topics, open_admin, read_config, warn_of_one_replica
from fraud_filter.kafka.refusals import describe_error, no_topic
from fraud_filter.modes import MODES, STATEFUL, Mode
from fraud_filter.query.filter_query import load_filter
from fraud_filter.query.invoke import each
from fraud_filter.query.query import Query
from fraud_filter.query.user_query import load_user_query
from fraud_filter.records import most_written_bytes
from fraud_filter.rules.features import Feature
from fraud_filter.spark.executors import count_slots
from fraud_filter.text.logs import get_logger

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient
    from pyspark.sql import DataFrame, SparkSession

_NAMED = ("earliest", "latest")
#: Spark's number for the first offset that the topic holds (Spark guide, "Kafka": startingOffsets).
_EARLIEST = -2
_log = get_logger(__name__)

_SOURCES = {"StreamingRelationV2", "StreamingDataSourceV2Relation", "SubqueryAlias", "View"}

_ADVICE = {
    "Aggregate": "an aggregation (groupBy, count, distinct)",
    "EventTimeWatermark": "a watermark (withWatermark)",
    "Deduplicate": "a deduplication (dropDuplicates)",
    "DeduplicateWithinWatermark": "a deduplication (dropDuplicatesWithinWatermark)",
    "Join": "a join",
    "Window": "a window function",
    "Union": "a union",
    "Generate": "an explode",
    "GlobalLimit": "a limit",
}


@dataclass(frozen=True)
class Inputs:
    """What a query is made of, checked: `partitions` counts those of the input, `state_partitions` of its state."""

    mode: Mode
    query: Query
    partitions: int
    state_partitions: int = 0

    @property
    def slots(self) -> int:
        """The task slots that the query holds as long as it runs."""
        return self.partitions + self.state_partitions if self.mode.holds_tasks else 0

    @property
    def cores(self) -> int:
        """The cores to ask a cluster for: one for each task that runs at the same time."""
        return self.slots or self.partitions


def check_inputs(settings: Settings) -> Inputs:
    """Checks everything that can be checked without Spark.

    Raises:
        UsageError: the mode can't use the source or sink, the schema or the rules are wrong, no broker answers, a
            topic is missing, or the checkpoint can't be written.
    """
    mode = MODES[settings.mode]
    _check_pair(settings, mode)
    _check_interval(settings, mode)
    query = load_user_query(settings) if settings.query else load_filter(settings, mode)
    _check_checkpoint(settings)
    _check_port(settings)
    partitions = {"rate": rate_partitions(settings), "socket": 1}.get(settings.source, 0)
    if "kafka" in (settings.source, settings.sink):
        partitions = count_partitions(settings, first=True) or partitions
    kept = state_partitions(query.features, settings)
    if settings.query and mode.holds_tasks and mode.runs("Aggregate"):
        kept = settings.velocity_partitions  # so many cores are asked for; what it keeps is known when it is planned
    return Inputs(mode, query, partitions, kept)


def rate_partitions(settings: Settings) -> int:
    """The partitions of the source `rate`: Spark's option numPartitions, 2 where it is not given.

    Raises:
        UsageError: that is no number from 1.
    """
    given = {name.lower(): text for name, text in settings.source_options.items()}.get("numpartitions", "2")
    if settings.source == "rate" and not (given.isdecimal() and int(given)):
        raise refused("source_options", given, "is no number of partitions", "give numPartitions a number from 1")
    return int(given) if given.isdecimal() else 0


def check_slots(spark: SparkSession, inputs: Inputs, settings: Settings) -> None:
    """Checks that each partition gets a task slot where the mode holds one task per partition permanently.

    Raises:
        UsageError: fewer slots than partitions; some partitions would never be read, without a word.
    """
    slots = count_slots(spark)
    if lacks_slots(inputs, slots):
        local = settings.spark_master.startswith("local")
        remedy = f"set SPARK_MASTER=local[{inputs.slots}]" if local else "raise SPARK_WORKER_CORES or add workers"
        behind = "the query's shuffles" if settings.query else "the state of the features"
        state = f", {behind} {inputs.state_partitions}" if inputs.state_partitions else ""
        raise UsageError(
            f"{settings.input_topic} has {inputs.partitions} partitions{state}, the application was granted {slots} "
            f"task slots: in {inputs.mode.name} mode {inputs.slots - slots} partitions would never be read; {remedy}, "
            "or read a topic with fewer partitions"
        )


def lacks_slots(inputs: Inputs, slots: int) -> bool:
    """Whether the mode holds a task slot for each partition, and these are too few."""
    return slots < inputs.slots


def check_plan(decisions: DataFrame, mode: Mode) -> None:
    """Refuses operators that the mode can't run, before Spark does so with a stack trace.

    Raises:
        UsageError: names the operator and the modes that can run it.
    """
    for node in plan_nodes(decisions._jdf.queryExecution().analyzed()):
        kind = str(node.getClass().getSimpleName())
        if not node.isStreaming():  # a table that records are joined with
            continue
        if kind.startswith("Repartition"):
            how = str(node.partitioning().getClass().getSimpleName()) if node.shuffle() else "Coalesce"
            kind = how if how in ("Coalesce", "RangePartitioning") else "Repartition"
        if kind == "StreamingRelation" and mode.operators:  # of a format that only micro-batches can read
            name = str(node.dataSource().className())
            able = [other.name for other in MODES.values() if other.operators is None and "format" in other.sources]
            reason = f"does not work in {mode.name} mode"
            raise refused("source", name, reason, f"it works in {', '.join(able)} mode")
        if kind not in _SOURCES and not mode.runs(kind):
            modes = ", ".join(other.name for other in MODES.values() if other.runs(kind))
            why = "it takes each record by itself" if mode.operators else "it keeps no state"
            raise UsageError(
                f"the query contains {operator_in_words(kind)}, which {mode.name} mode can't run: "
                f"{why}; remove it, or give {modes} to the {named('mode')}"
            )


def operator_in_words(kind: str) -> str:
    """One of Spark's logical operators, as a user knows it."""
    return _ADVICE.get(kind, f"the operator {kind}")


def count_shuffled(rows: DataFrame, settings: Settings) -> int:
    """The partitions that records are sent on to, which keep state or only the order of a key: each has its task."""
    count = 0
    for node in plan_nodes(rows._jdf.queryExecution().analyzed()):
        kind = str(node.getClass().getSimpleName())
        if node.isStreaming() and (kind in STATEFUL or kind.startswith("Repartition")):
            own = [node.numPartitions()] if kind == "Repartition" else []
            own += each(node.optNumPartitions().toList()) if kind == "RepartitionByExpression" else []
            count += own[0] if own else settings.velocity_partitions
    return count


def calls_python(rows: DataFrame) -> bool:
    """Whether a Python function runs for each row."""
    patterns: Any = rows.sparkSession._jvm.org.apache.spark.sql.catalyst.trees.TreePattern  # type: ignore[union-attr]
    return bool(rows._jdf.queryExecution().analyzed().containsPattern(patterns.PYTHON_UDF()))


def plan_nodes(plan: Any) -> Any:
    """All operators of a plan."""
    yield plan
    for child in each(plan.children()):
        yield from plan_nodes(child)


def state_partitions(features: tuple[Feature, ...], settings: Settings) -> int:
    """The partitions of the state of the features that the mode computes; 0 where it computes none."""
    if not features or MODES[settings.mode].lacks_features:
        return 0
    return settings.velocity_partitions


def _check_pair(settings: Settings, mode: Mode) -> None:
    for kind, chosen, supported in (
        ("source", settings.source_kind, mode.sources),
        ("sink", settings.sink, mode.sinks),
    ):
        if chosen not in supported:
            able = [other.name for other in MODES.values() if chosen in getattr(other, f"{kind}s")]
            remedy = f"it takes {', '.join(sorted(supported))}, and {chosen!r} works in {', '.join(able)}"
            raise refused(kind, chosen, f"does not work in {mode.name} mode", remedy)


def _check_interval(settings: Settings, mode: Mode) -> None:
    interval = mode.interval
    if interval.is_too_short(settings):
        raise refused(interval.setting, getattr(settings, interval.setting), "is too short", interval.advice)


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
        reason = f"can't be written: {error.strerror or error}"
        raise refused("checkpoint", settings.checkpoint, reason, "give a directory that this user may write") from None


def _check_port(settings: Settings) -> None:
    if not settings.ui_port:
        return
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Spark's: closed connections don't count
        try:
            probe.bind(("127.0.0.1", settings.ui_port))
        except OSError as error:
            reason = f"can't be used: {error.strerror}"
            raise refused("ui_port", settings.ui_port, reason, "give a free port, or 0 for no page") from None


def count_partitions(settings: Settings, *, first: bool = False) -> int:
    """The number of partitions of the input topic, 0 when the source is not Kafka.

    Args:
        first: whether no query of this program has run yet: an output topic that takes too little is refused then.
            Later it is warned of, as the payments that it takes are decided.

    Raises:
        UsageError: no broker answers, one of the topics does not exist, or an output topic can't be used.
    """
    wanted = ["input_topic"] if settings.source == "kafka" else []
    if settings.sink == "kafka":
        wanted += output_topics(settings)
    if not wanted:
        return 0
    names = {setting: getattr(settings, setting) for setting in wanted}
    admin = open_admin(settings)
    found = find_topics(admin, settings, list(names.values()))
    for setting, name in names.items():
        if name not in found:
            raise no_topic(settings, setting)
        if setting != "input_topic":
            _check_output_topic(admin, settings, setting, first=first)
    if first:
        warn_of_one_replica(admin, settings, found)
    return len(found[settings.input_topic].partitions) if settings.source == "kafka" else 0


def _check_output_topic(admin: AdminClient, settings: Settings, setting: str, *, first: bool) -> None:
    """A record that the topic does not take ends the query.

    Raises:
        UsageError: the topic is compacted, and takes no record without a key; or it takes small records alone, at the
            `first` start.
    """
    name, needed = getattr(settings, setting), most_written_bytes(settings)
    try:
        config = read_config(admin, settings, name)
    except KafkaException as error:  # it may not be ours to see
        _log.warning("topic_limit_unknown", topic=name, reason=describe_error(error))
        return
    policy, present = config["cleanup.policy"] or "", int(config["max.message.bytes"] or 0)
    if "compact" in policy:
        reason = f"has cleanup.policy={policy}: it takes no payment without a key, and keeps one decision of each key"
        raise refused(setting, name, reason, "set cleanup.policy=delete on it")
    if present >= needed:
        return
    if first:
        reason = f"has max.message.bytes={present}, less than the {needed} that a decision may have"
        raise refused(setting, name, reason, f"set max.message.bytes={needed} on the topic, or lower max_record_bytes")
    _log.warning(
        "topic_takes_too_little",
        topic=name,
        max_message_bytes=present,
        needed=needed,
        action=f"set max.message.bytes={needed} on the topic, or lower max_record_bytes",
    )


def complete(settings: Settings, partitions: int) -> Settings:
    """The settings with an offset for each partition: those that are not named begin at the earliest.

    Spark demands all of them, and says so when the query runs already.

    Args:
        partitions: those of the input topic.

    Raises:
        UsageError: it is neither a word nor offsets of the input topic alone, or names a partition that is not there.
    """
    if settings.source != "kafka" or settings.starting_offsets in _NAMED:
        return settings
    given = _parse(settings)
    unknown = sorted(number for number in given if number not in range(partitions))
    if unknown:
        reason = f"names partitions that {settings.input_topic!r} has not: {', '.join(map(str, unknown))}"
        raise refused("starting_offsets", settings.starting_offsets, reason, f"it has 0 to {partitions - 1}")
    return begin_at(settings, given, range(partitions))


def require_there(settings: Settings, at: Mapping[int, int], bounds: Mapping[int, tuple[int, int]]) -> None:
    """Checks that a query without a checkpoint begins at offsets that the topic has, or at its end.

    A word is always there: where the topic ends was read after `bounds`, and may be beyond them by now.

    Args:
        at: where it would begin, by partition.
        bounds: first and end offset by partition, records of open transactions included.

    Raises:
        UsageError: names the partitions whose offset lies before the first retained one or beyond the end.
    """
    if settings.starting_offsets in _NAMED:
        return
    absent = [
        f"partition {number} has offsets {low} to {end}, not {at[number]}"
        for number, (low, end) in sorted(bounds.items())
        if number in at and not low <= at[number] <= end
    ]
    if absent:
        remedy = f"give offsets within these, or {' or '.join(_NAMED)}"
        raise refused("starting_offsets", settings.starting_offsets, f"is not there: {'; '.join(absent)}", remedy)


def begin_at(settings: Settings, at: Mapping[int, int], partitions: Iterable[int]) -> Settings:
    """The settings with the offset of each partition, the earliest where `at` names none."""
    offsets = {str(number): at.get(number, _EARLIEST) for number in partitions}
    return settings.model_copy(update={"starting_offsets": json.dumps({settings.input_topic: offsets})})


def _parse(settings: Settings) -> dict[int, int]:
    try:
        topics = json.loads(settings.starting_offsets)
        offsets = topics[settings.input_topic]
        if len(topics) > 1 or not all(isinstance(offset, int) and offset >= _EARLIEST for offset in offsets.values()):
            raise ValueError(topics)
        return {int(number): offset for number, offset in offsets.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        example = f'{{"{settings.input_topic}": {{"0": 12, "1": 3}}}}'
        remedy = f"give {', '.join(_NAMED)}, or JSON such as {example}"
        raise refused("starting_offsets", settings.starting_offsets, "is not accepted", remedy) from None
