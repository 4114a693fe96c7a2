"""An archive of Spark's classes, loaded and verified once (class data sharing, JEP 350), so that Java starts faster.

Loading more than 10,000 classes is most of what a start of Spark costs, and a start is most of what a restart of the
query takes. The archive is made by a small query that runs for a few seconds. Classes that the filter needs and this
query does not, such as those of Kafka's clients, are loaded by name. Java itself checks that the archive fits the Java
and the jars in use, and does without where it does not. Knows nothing of the filter: the images' build runs this too.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
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
_MAKE_TIMEOUT_S = 300
#: In a Java's file `release`.
_TAKES_IT = b'JAVA_VERSION="17.'
#: Nobody needs to know that Java does without an archive; the option's own effect is what tells.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def java_options(archive: Path) -> str:
    """What makes Java use the archive, as options on its command line."""
    return f"-XX:SharedArchiveFile={archive} {_QUIET}"


def find() -> Path | None:
    """The archive for the Java that Spark would start with, beside Spark's jars; None when there is none."""
    home = os.environ.get("JAVA_HOME")
    java = home or shutil.which("java")
    if java is None:
        return None
    path = _path(Path(home) if home else Path(java).resolve().parents[1])
    return path if path and path.is_file() else None


def ensure(java_home: Path, say: Callable[[str], None]) -> None:
    """Makes the archive for this Java, unless it is there. One process at a time does.

    Where it can't be made, programs start without one, only slower; the reason is logged.

    Args:
        say: told before something that takes about 20 seconds.
    """
    from fraud_filter.text.logs import get_logger  # here: the build of an image, which runs `make`, has no such module

    log = get_logger(__name__)
    path = _path(java_home)
    if path is None or path.exists() or not os.access(path.parent, os.W_OK):
        return
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return
        say("preparing Spark's classes for faster starts (once)")
        argv = [sys.executable, "-m", "fraud_filter.java.class_archive", str(path)]
        try:
            ran = subprocess.run(
                argv, env={**os.environ, "JAVA_HOME": str(java_home)}, capture_output=True, text=True, check=False,
                timeout=_MAKE_TIMEOUT_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            log.warning("class_archive_failed", reason=f"not made within {_MAKE_TIMEOUT_S} s")
            return
        if ran.returncode:
            log.warning("class_archive_failed", reason=(ran.stderr.strip().splitlines() or ["unknown"])[-1])


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


def _path(java_home: Path) -> Path | None:
    """Named after the Java, so that another one gets another; None for a Java that would not take it.

    Java 21 refuses an archive when a jar stands twice on the class path, as slf4j's does by Spark's launcher. In the
    images it is renamed, in somebody's virtual environment it is not.
    """
    try:
        release = java_home.joinpath("release").read_bytes()
    except OSError:
        return None
    if _TAKES_IT not in release:
        return None
    digest = hashlib.sha256(release + Path(__file__).read_bytes()).hexdigest()
    return _spark() / f"classes-{digest[:12]}.jsa"


if __name__ == "__main__":
    make(Path(sys.argv[1]))
