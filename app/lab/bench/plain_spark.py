"""The contender `spark`: real-time mode as Spark and Kafka come, without what the filter sets and watches.

It runs a query of the user's: rules are made for the settings of the filter. As a program it gets the settings in its
environment, and goes on until SIGTERM.
"""

from __future__ import annotations

import signal
import sys
import threading

from fraud_filter.config import Settings, load
from fraud_filter.modes import MODES
from lab.bench.launch import Launch
from lab.harness.processes import Child
from lab.harness.programs import filter_program

#: What Spark demands of a real-time query with state.
_STATE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
}
_LOOK_S = 0.5


def program(launch: Launch) -> Child:
    """The query, not started yet; of the changed settings it takes those of Spark, source, sink and topics."""
    argv = [sys.executable, "-m", "lab.bench.plain_spark"]
    folder, log = str(launch.folder), f"{launch.name}.log"
    changes = {**launch.own, "starting_offsets": "earliest"}  # the topics are new
    return filter_program(
        launch.stack, "real-time", launch.start, checkpoint=folder, log=log, changes=changes, argv=argv
    )


def main(settings: Settings) -> None:
    """Runs the query until it is told to end; what ends the query is raised."""
    from pyspark.sql import SparkSession

    from fraud_filter.kafka.admin import find_input, open_admin
    from fraud_filter.kafka.client import spark_kafka_options
    from fraud_filter.query import sources
    from fraud_filter.query.once import Written
    from fraud_filter.query.user_query import load_user_query
    from fraud_filter.spark.session import connector_jars

    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    jars = ",".join(map(str, connector_jars()))
    conf = {"spark.jars": jars, "spark.ui.enabled": "false", **_STATE, **settings.spark_conf}
    builder = SparkSession.builder.master(settings.spark_master)
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    mode = MODES["real-time"]
    query = load_user_query(settings)
    partitions = len(find_input(open_admin(settings), settings).partitions)
    records = sources.read(spark, mode, query.schema, settings, partitions)
    rows = query.plan(query.rows(records, settings), records).decide(records, settings, "", Written())
    options = {**spark_kafka_options(settings), "includeHeaders": "true", **settings.kafka_sink_options}
    writer = rows.writeStream.format("kafka").options(**options).outputMode("update")
    running = writer.option("checkpointLocation", settings.checkpoint).trigger(**mode.trigger(settings)).start()
    while not ended.wait(_LOOK_S):
        if not running.isActive:
            running.awaitTermination()  # raises why
    running.stop()
    spark.stop()


if __name__ == "__main__":
    main(load())
