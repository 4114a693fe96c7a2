"""What an embedded run needs before it begins: Java, the jars, Spark's class archive; got where they are missing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fraud_filter.java import class_archive
from fraud_filter.java.jars import KAFKA_LOCK, SPARK_LOCK, resolve_jars
from fraud_filter.java.runtime import Say, require_java


@dataclass(frozen=True)
class Supplies:
    """A usable Java's home, and the broker's jars."""

    java_home: Path
    kafka_jars: list[Path]


def get_supplies(say: Say) -> Supplies:
    """Gets them; says on stderr what is downloaded.

    Raises:
        FraudFilterError: a jar can't be fetched, or is not the one that was locked.
        UsageError: there is no Java and none can be downloaded.
    """
    java_home = require_java(say)
    jars = resolve_jars(KAFKA_LOCK)
    resolve_jars(SPARK_LOCK)  # now, and not unseen in the first query
    class_archive.ensure(java_home, say)
    return Supplies(java_home, jars)
