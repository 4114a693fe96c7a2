"""The Spark session of the filter: where it runs, which jars it needs, how it logs."""

from __future__ import annotations

import logging
import math
import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fraud_filter.config import Settings, refused
from fraud_filter.config.reachable import unreachable
from fraud_filter.home import HOME
from fraud_filter.java import class_archive, gateway
from fraud_filter.modes import Mode

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

_HOST = r"(?:[^\s,:/\[\]]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}"
_MASTER = re.compile(
    r"local(\[(\*|[1-9][0-9]*)(, *[1-9][0-9]*)?\])?|local-cluster\[[0-9, ]+\]|yarn|k8s://\S+"
    rf"|spark://{_HOST}(,{_HOST})*"
)
#: Jars without which Spark takes no such master. The images leave them out.
_MANAGERS = {"yarn": "spark-yarn_*.jar", "k8s": "spark-kubernetes_*.jar"}
#: A master that starts at the same time as the filter answers by then.
_MASTER_ANSWERS_S = 10.0
_LOOK_S = 0.5
#: What rules are checked for, and mean: no setting of a user's changes it.
_RULES_CONF = {
    # No record ends the query: a division by zero or a failed cast in a rule gives null, and what throws even so is no
    # part of a rule (`rules/language`).
    "spark.sql.ansi.enabled": "false",
    # Rules on hours and days mean the same on every machine.
    "spark.sql.session.timeZone": "UTC",
    # Otherwise `${env:NAME}` in a rule is what the environment holds, secrets too.
    "spark.sql.variable.substitute": "false",
}
#: Spark opens a session, which it then stops, though no master has given the application an id: its own begins so.
_NO_ID = "spark-application-"
_NOT_TAKEN = "gives no session: no master took the application; is spark.authenticate.secret the master's?"
#: The most cores that an application gets of a standalone cluster.
_CORES = "spark.cores.max"
#: What it asks of YARN and Kubernetes: so many executors, each with so many cores; Spark's defaults are 2 and 1.
_EXECUTORS, _EACH = "spark.executor.instances", "spark.executor.cores"
_OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer."
_EXCLUDED_RULES = (
    # Pushed below the projections, the filter on the rules would repeat the JSON parser once for each use of a field,
    # and a filter shares no common subexpressions: dozens of parses a payment instead of one.
    f"{_OPTIMIZER}PushDownPredicates",
    f"{_OPTIMIZER}PushPredicateThroughNonJoin",
    # The others find next to nothing in a query over one topic, but walk through all its expressions: without them a
    # micro-batch takes a fifth less of the processor for its planning (54 ms before, `RuleExecutor.dumpTimeSpent`).
    *(
        f"{_OPTIMIZER}{rule}"
        for rule in (
            "FoldablePropagation",
            "NullDownPropagation",
            "OptimizeCsvJsonExprs",
            "OptimizeOneRowRelationSubquery",
            "RemoveNoopOperators",
            "RemoveRedundantAliases",
            "ReorderAssociativeOperator",
            "SimplifyBinaryComparison",
            "SimplifyConditionals",
        )
    ),
    *(
        f"org.apache.spark.sql.execution.datasources.{rule}"
        for rule in ("PruneFileSourcePartitions", "PushVariantIntoScan", "SchemaPruning")
    ),
)
#: What the filter needs of every session, whatever the mode.
_FILTER_CONF = {
    **_RULES_CONF,
    # Spark switches it off for streaming queries with a warning at each batch.
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # In real-time mode heartbeats alone tell what is read between batches, minutes apart.
    "spark.executor.heartbeatInterval": "5s",
    # A task that is tried again writes nothing (`query/once`), and in real-time mode reads nothing where its batch is
    # over: its query ends with what failed first.
    "spark.task.maxFailures": "1",
    # A record that unpacks to more than the memory fails its task; Java goes on, so that the record can be found.
    "spark.executor.killOnFatalError.depth": "0",
    # Any web page in a browser on this machine could follow the links that end a job, or stop all threads for a while.
    "spark.ui.killEnabled": "false",
    "spark.ui.heapHistogramEnabled": "false",
    "spark.sql.optimizer.excludedRules": ",".join(_EXCLUDED_RULES),
    # Deriving what must hold of each column finds nothing to prune in a query without joins, and took 0.2 s of each
    # micro-batch: nine tenths of its planning.
    "spark.sql.constraintPropagation.enabled": "false",
    # Spark looks through the plan after each rule that changed it, for those who write rules: a tenth of the optimizer.
    "spark.sql.lightweightPlanChangeValidation": "false",
    # HotSpot never compiles a longer method (in bytes; -XX:+DontCompileHugeMethods). A stage of generated code that
    # would need one runs as single operators instead, whose code Spark cuts into shorter ones.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # Most fields of an operator, those within structs too, with which Spark generates a stage: a payment of 49 fields
    # is beyond its default of 100. The length of its methods is limit enough.
    "spark.sql.codegen.maxFields": "1000",
}
#: The query's loop is entered once and runs for minutes. HotSpot compiles a running loop after 60,000 rounds, and well
#: after 40,000 more: that is a quarter of an hour at 100 payments/s.
EARLY_COMPILER = "-XX:Tier3BackEdgeThreshold=1000 -XX:Tier4BackEdgeThreshold=2000"
#: Java's default collector works beside the query's threads; this one only while they pause, for a few milliseconds at
#: the heaps of a query without state. A user's own choice wins.
COLLECTOR = "-XX:+UseSerialGC"


def start(settings: Settings, mode: Mode | None = None) -> SparkSession:
    """Starts Spark at `settings.spark_master`.

    Args:
        mode: the execution mode, whose session settings are added; None for a session that runs no query.

    Raises:
        FraudFilterError: Java does not start.
        UsageError: the master does not answer, or gives no session.
    """
    return connect(launch(settings, mode), settings)


def launch(
    settings: Settings,
    mode: Mode | None = None,
    keep_open: int | None = None,
    stop_requested: Callable[[], bool] = lambda: False,
) -> Any:
    """Starts Spark's Java process; its gateway (py4j) is returned, whose `proc` is the process.

    Args:
        keep_open: a file descriptor that the process is to hold, too.
        stop_requested: Java is killed at its start when this becomes true.

    Raises:
        LaunchStoppedError: so it was.
        UsageError: no Spark can be at `settings.spark_master`, or none answers there.
        FraudFilterError: it does not start.
    """
    from pyspark import SparkConf

    _check_master(settings)
    logging.getLogger("SQLQueryContextLogger").disabled = True  # repeats each error as JSON with a stack trace
    if settings.spark_master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # no port of a local run is open to the network
    conf = SparkConf().setMaster(settings.spark_master).setAppName(settings.query_name)
    # These become arguments of the Java process, which everyone on the machine can read.
    secret = settings.secret_spark_conf()
    conf.setAll([(name, value) for name, value in _conf(settings, mode).items() if name not in secret])
    return gateway.launch(conf, keep_open, stop_requested)


def connect(java: Any, settings: Settings, cores: int = 0) -> SparkSession:
    """A session in a started Java process, which got its configuration at its start, and its secrets now.

    Args:
        java: the gateway that `launch` returned.
        cores: how many to ask a cluster for, where no setting of the user's says it; 0: what the cluster gives by
            itself.

    Raises:
        UsageError: the master gives none; the Java process is told to end.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    conf = SparkConf(_jvm=java.jvm).setAll(list(settings.secret_spark_conf().items()))
    if cores:
        ask_for(conf, settings.spark_master, cores)
    # In the main thread PySpark would put a handler of its own on SIGINT, which cuts calls to Java short.
    with ThreadPoolExecutor(1) as aside:
        starting = aside.submit(lambda: SparkSession(SparkContext(conf=conf, gateway=java)))
        try:
            spark = starting.result()
        except Exception as error:
            reason = first_line(error)
            java.shutdown()
            if not hasattr(error, "java_exception"):
                raise
            # What a session of an application that no master took then says of itself.
            reason = _NOT_TAKEN if "stopped SparkContext" in reason else f"gives no session: {reason}"
            raise refused("spark_master", settings.spark_master, reason) from None
        except BaseException:  # Ctrl-C: the call that waits for Java ends with it
            java.proc.kill()
            raise
    if settings.spark_master.startswith("spark://") and spark.sparkContext.applicationId.startswith(_NO_ID):
        java.shutdown()
        raise refused("spark_master", settings.spark_master, _NOT_TAKEN)
    return spark


def ask_for(conf: SparkConf, master: str, cores: int) -> None:
    """Has an application ask its cluster for as many executors as give so many cores, where `conf` does not say it."""
    if master.startswith("spark://"):
        conf.setIfMissing(_CORES, str(cores))
    elif _has_manager(master):
        conf.setIfMissing(_EXECUTORS, str(math.ceil(cores / int(conf.get(_EACH, "1")))))


def asked_cores(conf: SparkConf, master: str) -> int:
    """The cores that an application asks its cluster for; 0: as many as there are."""
    if _has_manager(master):
        return int(conf.get(_EXECUTORS, "2")) * int(conf.get(_EACH, "1"))
    return int(conf.get(_CORES, "0"))


def _has_manager(master: str) -> bool:
    """Whether executors are started by YARN or by Kubernetes, which know nothing of `spark.cores.max`."""
    return master == "yarn" or master.startswith("k8s://")


def _check_master(settings: Settings) -> None:
    """Spark's own words on a wrong address are a stack trace, and on one where nobody answers they take a minute."""
    master = settings.spark_master
    if not _MASTER.fullmatch(master):
        remedy = "give local[N], local[*], spark://HOST:PORT, yarn or k8s://URL"
        raise refused("spark_master", master, "is no address of a Spark master", remedy)
    scheme, _, hosts = master.partition("://")
    if scheme in _MANAGERS and not any(spark_jars().glob(_MANAGERS[scheme])):
        lack = f"needs a jar of Spark's that is not in {spark_jars()}: {_MANAGERS[scheme]}"
        raise refused("spark_master", master, lack, "take Spark as pip installs it; this project's images leave it out")
    if scheme != "spark":
        return
    until = time.monotonic() + _MASTER_ANSWERS_S
    while reasons := [reason for host in hosts.split(",") if (reason := unreachable(host))]:
        if len(reasons) < hosts.count(",") + 1:
            return
        if time.monotonic() > until:
            raise refused("spark_master", master, f"does not answer: {'; '.join(reasons)}", "start it, or name another")
        time.sleep(_LOOK_S)


def forget() -> None:
    """Makes PySpark forget a session whose Java process is gone, so that the next one gets a process of its own."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None


def first_line(error: Exception) -> str:
    """What Spark, or the Java below it, says first; the class of the error where it says nothing."""
    java = getattr(error, "java_exception", None)
    said = str(error if java is None else java.getMessage())
    return next((line.strip() for line in said.splitlines() if line.strip()), type(error).__name__)


def _conf(settings: Settings, mode: Mode | None) -> dict[str, str]:
    conf = {
        **_FILTER_CONF,
        **_default_java_options(settings),
        "spark.driver.extraJavaOptions": " ".join(_java_options(settings)),
        # Who needs executors waits for them (`supervisor.cluster`).
        "spark.scheduler.minRegisteredResourcesRatio": "0",
        "spark.ui.enabled": str(settings.ui_port > 0).lower(),
        # The query's own stop is bounded by this; the supervisor ends the process when that is not enough.
        "spark.sql.streaming.stopTimeout": f"{round(settings.stop_timeout_s * 1000)}ms",
    }
    if settings.spark_master.partition("[")[0] != "local":
        # An executor that can't reach its driver ends after three heartbeats, and writes nothing any more that a new
        # filter can't know of; by default that takes ten minutes. A local one is the driver, and its heartbeats fail
        # until it has copied the jars of `spark.jars.packages`.
        conf["spark.executor.heartbeat.maxFailures"] = "3"
    if _has_manager(settings.spark_master):
        # They end an application of which twice as many executors were lost as it has: by default in all its life.
        conf["spark.executor.failuresValidityInterval"] = "1h"
    if settings.ui_port:
        conf["spark.ui.port"] = str(settings.ui_port)
    if mode is not None:
        conf |= mode.session_conf(settings)
        if "kafka" in (settings.source, settings.sink):
            jars = connector_jars()
            if jars:
                conf["spark.jars"] = ",".join(map(str, jars))
    return conf | settings.spark_conf


def _default_java_options(settings: Settings) -> dict[str, str]:
    """What a user's own options, which come after them, can change."""
    options = {}
    for side in ("driver", "executor"):
        own = settings.spark_conf.get(f"spark.{side}.extraJavaOptions", "")
        # Java does not start when two collectors are named.
        collector = () if "GC" in own else (COLLECTOR,)
        options[f"spark.{side}.defaultJavaOptions"] = " ".join((EARLY_COMPILER, *collector))
    return options


def _java_options(settings: Settings) -> Iterator[str]:
    yield f"-Dlog4j2.configurationFile={(HOME / 'spark/conf/log4j2.properties').as_uri()}"
    # In the Compose stack the image's entrypoint names the archive of the image.
    archive = class_archive.find() if settings.spark_master.startswith("local") else None
    if archive:
        yield class_archive.java_options(archive)


def spark_jars() -> Path:
    """The folder of Spark's own jars."""
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


def connector_jars() -> list[Path]:
    """Jars of Spark's Kafka connector; empty where they already lie beside Spark's own, as in the Spark image."""
    if any(spark_jars().glob("spark-sql-kafka-*.jar")):
        return []
    from fraud_filter.java.jars import resolve_jars

    return resolve_jars(HOME / "spark/jgo.lock.toml")
