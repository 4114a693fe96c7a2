"""The pinned Spark has what `spark/internals.py` uses of its private state: to be run first on another version."""

from __future__ import annotations

from typing import Any

import pytest

SQL = "org.apache.spark.sql"
ENGINE = f"{SQL}.execution.streaming.runtime"
#: By class: its methods, and in brackets its private fields.
USED = {
    f"{ENGINE}.StreamingQueryWrapper": ["streamingQuery"],
    f"{ENGINE}.MicroBatchExecution": ["state", "awaitProgressLock", "status", "lastExecution"],
    f"{ENGINE}.ACTIVE$": ["[MODULE$]"],
    f"{ENGINE}.TERMINATED$": ["[MODULE$]"],
    f"{SQL}.streaming.StreamingQueryStatus": ["isDataAvailable", "isTriggerActive"],
    f"{SQL}.execution.datasources.v2.RealTimeStreamScanExec": ["inputPartitions", "metrics"],
    f"{SQL}.classic.SparkSession": ["sharedState"],
    f"{SQL}.internal.SharedState": ["statusStore"],
    f"{SQL}.execution.ui.SQLAppStatusStore": ["executionsCount", "executionsList", "listener"],
    f"{SQL}.execution.ui.SQLExecutionUIData": ["executionId", "completionTime", "stages"],
    f"{SQL}.execution.ui.SQLAppStatusListener": ["[stageMetrics]"],
    f"{SQL}.execution.ui.LiveStageMetrics": ["metricValues"],
    "org.apache.spark.SparkContext": ["dagScheduler"],
    "org.apache.spark.scheduler.DAGScheduler": ["activeJobs", "numTotalJobs"],
}


@pytest.mark.parametrize("name", USED)
def test_spark_has_it(spark: Any, name: str) -> None:
    loader = spark._jsparkSession.sharedState().jarClassLoader()
    loaded = spark._jvm.java.lang.Class.forName(name, False, loader)
    methods = {method.getName() for method in loaded.getMethods()}
    fields = {f"[{field.getName()}]" for field in loaded.getDeclaredFields()}
    assert [member for member in USED[name] if member not in methods | fields] == []
