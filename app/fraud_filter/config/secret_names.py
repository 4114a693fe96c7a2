"""Which options of Spark and Kafka hold secrets, by their names, and how these are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping

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
