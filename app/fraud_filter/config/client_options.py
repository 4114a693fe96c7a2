"""Which options of Kafka's clients and of Spark a user may set beside the settings, and which of them hold secrets.

Kafka's are a list of what may be set: networks, logins, and how much is fetched or sent at once. Everything else is the
program's own or would undo a promise: `acks=0` loses decisions, `startingOffsets=latest` skips payments. Of Spark's
settings those of SQL and streaming are such a list too; memory, network, file systems and cluster managers are free.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_KAFKA = "kafka."
#: Kafka documentation, "Consumer Configs" and "Producer Configs"; of both clients.
_CLIENT = (
    r"sasl\.(?!mechanism$).+", r"ssl\..+", r"client\.(id|rack|dns\.lookup)", r"connections\.max\.idle\.ms",
    r"metadata\.max\.(age|idle)\.ms", r"metadata\.recovery\..+", r"(receive|send)\.buffer\.bytes",
    r"reconnect\.backoff(\.max)?\.ms", r"retry\.backoff(\.max)?\.ms", r"request\.timeout\.ms",
    r"socket\.connection\.setup\.timeout(\.max)?\.ms",
    r"metrics\.(sample\.window\.ms|num\.samples|recording\.level)", r"enable\.metrics\.push",
)  # fmt: skip
_SOURCE = (
    r"fetch\.(min\.bytes|max\.bytes|max\.wait\.ms)", r"max\.partition\.fetch\.bytes", r"max\.poll\.records",
    r"default\.api\.timeout\.ms", r"group\.protocol",
)  # fmt: skip
_SINK = (r"batch\.size", r"compression\..+", r"delivery\.timeout\.ms", r"max\.block\.ms")
#: Options of Spark's Kafka source itself (Spark guide, "Structured Streaming + Kafka Integration").
_SPARK_SOURCE = (
    "groupidprefix",
    "kafkaconsumer.polltimeoutms",
    "fetchoffset.numretries",
    "fetchoffset.retryintervalms",
)
#: Names, in lower case, that a setting of the program has; of either kind of options.
_SETTINGS = {
    "subscribe": "input_topic",
    "subscribepattern": "input_topic",
    "assign": "input_topic",
    "topic": "flagged_topic",
    "startingoffsets": "starting_offsets",
    "startingtimestamp": "starting_offsets",
    "startingoffsetsbytimestamp": "starting_offsets",
    "failondataloss": "fail_on_data_loss",
    "maxoffsetspertrigger": "max_offsets_per_trigger",
    "kafka.bootstrap.servers": "kafka_bootstrap_servers",
    "kafka.security.protocol": "kafka_security_protocol",
    "kafka.sasl.mechanism": "kafka_sasl_mechanism",
    "kafka.isolation.level": "kafka_isolation_level",
    "kafka.linger.ms": "linger_ms",
    "kafka.max.request.size": "max_record_bytes",
    "kafka.buffer.memory": "max_record_bytes",
}
#: What may be set of Spark SQL and streaming.
_SQL = re.compile(
    r"spark\.sql\.(codegen\.wholeStage|constraintPropagation\.enabled"
    r"|ui\..+|streaming\.ui\..+|streaming\.checkpointFileManagerClass|streaming\.continuous\.executorQueueSize"
    r"|streaming\.stateStore\.(compression\.codec|minDeltasForSnapshot|maintenanceInterval|rocksdb\.(?!formatVersion).+)"
    r"|hadoop\..+|hive\..+)"
)
#: Of the rest what the program sets, or what would run a task twice or not again; by the setting that says it.
_SPARK = {
    "spark.master": "spark_master",
    "spark.app.name": "query_name",
    "spark.ui.enabled": "ui_port",
    "spark.ui.port": "ui_port",
    "spark.ui.killEnabled": "",
    "spark.ui.heapHistogramEnabled": "",
    "spark.executor.heartbeatInterval": "",
    "spark.executor.heartbeat.maxFailures": "",
    "spark.task.maxFailures": "",
    "spark.jars": "",
    "spark.speculation": "",
    "spark.scheduler.minRegisteredResourcesRatio": "",
}
#: Spark takes its settings from Java's system properties too.
_SYSTEM_PROPERTY = re.compile(r"-Dspark\.")
_FOR_JARS = "; spark.jars.packages adds jars by their Maven coordinates"


def refuse_kafka(options: dict[str, str], *, sink: bool) -> dict[str, str]:
    """The options of the Kafka source or sink, as they are given.

    Names count in any case, as Spark reads them.

    Raises:
        ValueError: one may not be set; names it and what to do.
    """
    allowed = re.compile("|".join((*_CLIENT, *(_SINK if sink else _SOURCE))))
    for given in options:
        name = given.strip().lower()
        own = not sink and name in _SPARK_SOURCE
        if not own and not (name.startswith(_KAFKA) and allowed.fullmatch(name.removeprefix(_KAFKA))):
            raise ValueError(_sentence(given, _SETTINGS.get(name, "")))
    return options


def refuse_spark(options: dict[str, str]) -> dict[str, str]:
    """Spark's settings, as they are given.

    Raises:
        ValueError: one may not be set; names it and what to do.
    """
    for name, value in options.items():
        if "JavaOptions" in name and _SYSTEM_PROPERTY.search(value):
            raise ValueError(f"{name} sets Spark's settings by -Dspark.: give them as spark_conf")
        if name == "spark.sql.shuffle.partitions":
            raise ValueError(_sentence(name, "velocity_partitions"))
        if name in _SPARK or (name.startswith("spark.sql.") and not _SQL.fullmatch(name)):
            raise ValueError(_sentence(name, _SPARK.get(name, "")) + (_FOR_JARS if name == "spark.jars" else ""))
    return options


def _sentence(name: str, setting: str) -> str:
    if setting:
        return f"{name} is the setting {setting}: give that"
    return f"{name} may not be set, as the program sets it or rests on its default: leave it out"


#: Spark's `spark.redaction.regex`, its default (Configuration, "Runtime Environment"); a setting of one's own is added.
REDACTION = "spark.redaction.regex"
_REDACTED = re.compile("(?i)secret|password|token|access[.]?key")
#: Options of Kafka's clients of the type PASSWORD that Spark's expression does not find (Kafka, "Consumer Configs").
_KAFKA_PASSWORDS = frozenset(
    {"sasl.jaas.config", "ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.truststore.certificates"}
)
MASK = "**********"


def is_secret(name: str, own: re.Pattern[str] | None = None) -> bool:
    """Whether an option's value is to be hidden.

    Args:
        name: of an option of Spark, or of a Kafka client with or without the prefix `kafka.`.
        own: a further expression that secrets' names match.
    """
    plain = name.lower().rpartition("kafka.")[2]
    return bool(_REDACTED.search(name) or plain in _KAFKA_PASSWORDS or (own and own.search(name)))


def own_expression(spark_conf: Mapping[str, str]) -> re.Pattern[str] | None:
    """What the user's Spark settings say of secrets' names; None for nothing, and for what only Java understands."""
    try:
        return re.compile(spark_conf[REDACTION].replace("(?i)", ""), re.IGNORECASE)
    except (KeyError, re.error):
        return None


def masked(options: Mapping[str, str], own: re.Pattern[str] | None = None) -> dict[str, str]:
    """The options with the values of secrets hidden."""
    return {name: MASK if is_secret(name, own) else value for name, value in options.items()}
