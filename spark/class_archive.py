"""Writes an archive of Spark's classes, loaded and verified once (JEP 350), so that Java starts faster.

Loading more than 10,000 classes is most of what a start of Spark costs, and a start is most of what a restart of the
query takes. The archive is made by a small query that runs for a few seconds. Classes that the filter needs and this
query does not, such as those of Kafka's clients, are loaded by name. Knows nothing of the filter: the image's build
runs this, and the embedded stack where there is no archive yet.

Run as `python spark/class_archive.py FILE`.
"""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

#: A query that reads, parses, decides and writes as the filter does; both engines' classes are loaded by it.
_COLUMNS = (
    "cast(concat('card-', value) as binary) as key",
    """from_json('{"id": "p1", "amount": 12.5, "country": "DE", "at": "2026-03-01T12:00:00Z"}',
        'id STRING, amount DOUBLE, country STRING, at TIMESTAMP') as payment""",
    "array(struct('offset' as key, cast(cast(value as string) as binary) as value)) as headers",
)
_DECISION = "payment.amount > 10 and payment.country in ('DE', 'FR') and hour(payment.at) < 24"
#: What the query does not reach, for want of a broker and a cluster: packages, by the jars that have them.
_BY_NAME = {
    "kafka-clients-*.jar": ("org/apache/kafka/clients/", "org/apache/kafka/common/", "org/apache/kafka/shaded/"),
    "spark-sql-kafka-*.jar": ("org/apache/spark/",),
    "spark-token-provider-kafka-*.jar": ("org/apache/spark/",),
    "commons-pool2-*.jar": ("org/apache/commons/pool2/",),
    "spark-network-*.jar": ("org/apache/spark/network/",),
    "spark-core_*.jar": tuple(f"org/apache/spark/{package}/" for package in ("executor", "rpc", "scheduler")),
}
_RUN_S = 3
#: Nobody needs to know what Java leaves out.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def make(path: Path) -> None:
    """Writes the archive.

    Raises:
        OSError: Java wrote none.
        StreamingQueryException: the query failed.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    aside = path.with_suffix(f".{os.getpid()}")
    conf = SparkConf().setMaster("local[2]").setAppName("class-archive")
    # With its page: a server's classes are some hundreds.
    conf.set("spark.ui.port", "0").set("spark.ui.showConsoleProgress", "false")
    conf.set("spark.driver.extraJavaOptions", f"-XX:ArchiveClassesAtExit={aside} {_QUIET}")
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    gateway = launch_gateway(conf)  # type: ignore[no-untyped-call]
    spark = SparkSession(SparkContext(conf=SparkConf(_jvm=gateway.jvm), gateway=gateway))
    try:
        for trigger in ({"processingTime": "0 seconds"}, {"continuous": "1 second"}):
            _run(spark, trigger)
        _load(spark)
    finally:
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()  # Java ends at the end of its input, and writes the archive then
        gateway.proc.wait()
    try:
        aside.replace(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"Java wrote no archive {aside}") from None


def _run(spark: Any, trigger: dict[str, str]) -> None:
    rows = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    decided = rows.selectExpr(*_COLUMNS).filter(_DECISION)
    query = decided.writeStream.format("noop").trigger(**trigger).start()
    query.awaitTermination(_RUN_S)  # raises what the query failed of
    query.stop()


def _load(spark: Any) -> None:
    """Loads the classes that are archived by name, and initializes none of them."""
    from py4j.protocol import Py4JJavaError

    java = spark._jvm.java.lang
    loader = java.Thread.currentThread().getContextClassLoader()
    for name in _names():
        with suppress(Py4JJavaError):  # it builds upon a library that is not here, so nobody loads it
            java.Class.forName(name, False, loader)


def _names() -> Iterator[str]:
    for jars, packages in _BY_NAME.items():
        for jar in (_spark() / "jars").glob(jars):
            with zipfile.ZipFile(jar) as entries:
                for entry in entries.namelist():
                    if entry.startswith(packages) and entry.endswith(".class"):
                        yield entry.removesuffix(".class").replace("/", ".")


def _spark() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


if __name__ == "__main__":
    make(Path(sys.argv[1]))
