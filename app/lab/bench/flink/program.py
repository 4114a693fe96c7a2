"""Flink as a child process: where it is installed, how it is configured for latency, and how it is started."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

from fraud_filter.config import Settings
from fraud_filter.home import HOME
from fraud_filter.java.jars import LOCK_NAME, resolve_jars
from fraud_filter.kafka.admin import find_input, open_admin
from fraud_filter.rules.ruleset import load_rules
from fraud_filter.schema import load_schema
from fraud_filter.spark.session import COLLECTOR, EARLY_COMPILER
from lab.bench.flink.sql import statement, tables
from lab.bench.launch import Launch
from lab.harness.processes import Child

_HERE = Path(__file__).parent
_VENV = HOME / ".venv-flink"

#: Flink's options. Source, statement and sink are one chain in one task a partition (a fetcher thread reads for it),
#: records are handed on as objects, and nothing waits in a buffer; the sink flushes at each checkpoint, which makes it
#: at-least-once.
_SETTINGS = {
    "execution.runtime-mode": "STREAMING",
    "execution.buffer-timeout.interval": "0 ms",
    "execution.checkpointing.interval": "5 s",
    "execution.checkpointing.mode": "AT_LEAST_ONCE",
    "pipeline.object-reuse": "true",
    "pipeline.operator-chaining.enabled": "true",
    "pipeline.auto-watermark-interval": "0 ms",
    "restart-strategy.type": "none",  # a failure shall be seen
    "table.local-time-zone": "UTC",
    "rest.port": "0",
}
_MODE = "execution.checkpointing.mode"
#: Transactions, which a consumer sees when a checkpoint commits them.
EXACTLY_ONCE = {_MODE: "EXACTLY_ONCE", "execution.checkpointing.interval": "100 ms"}


def lacks(settings: Settings) -> str:
    """What must be done before Flink can be started; empty when nothing."""
    if settings.emit != "flagged":
        return "it writes nothing about approved payments: leave FRAUD_EMIT out"
    return "" if (_VENV / ".ready").exists() else "run `make bench-flink` first (Apache Flink, about 800 MB)"


def versions() -> dict[str, str]:
    """The version of Flink."""
    folders = [str(folder) for folder in _VENV.glob("lib/python*/site-packages")]
    found = next(iter(metadata.distributions(name="apache-flink", path=folders)), None)
    return {"flink": found.version if found else "unknown"}


def program(launch: Launch) -> Child:
    """The job, not started yet.

    Raises:
        UsageError: the schema or the rules are more than Flink's filter knows.
        FraudFilterError: its Kafka connector can't be fetched, or no broker answers.
    """
    stack, settings = launch.stack, launch.stack.settings
    schema = load_schema(settings.payment_schema)
    folder, checkpoints = launch.folder, launch.folder / "checkpoints"
    jars = ";".join(jar.as_uri() for jar in resolve_jars(_HERE / LOCK_NAME))
    options = {
        **_SETTINGS,
        **launch.own,
        "parallelism.default": str(len(launch.start)),
        "pipeline.jars": jars,
        "execution.checkpointing.dir": checkpoints.as_uri(),
        "io.tmp.dirs": str(folder),
    }
    transactions = launch.name if options[_MODE] == EXACTLY_ONCE[_MODE] else ""
    topic_id = find_input(open_admin(settings), settings).id
    job = {
        "settings": options,
        "checkpoints": str(checkpoints),
        "tables": tables(settings, launch.start, transactions=transactions),
        "statement": statement(schema, load_rules(settings.rules, schema), settings, topic_id),
    }
    file = folder / "job.json"
    file.write_text(json.dumps(job, indent=1), encoding="utf-8")
    env = {
        "JAVA_HOME": str(stack.java_home),
        "JDK_JAVA_OPTIONS": f"{EARLY_COMPILER} {COLLECTOR}",  # as the filter's
        "FLINK_LOG_DIR": str(folder),
        "PYTHONUNBUFFERED": "1",
    }
    argv = [_VENV / "bin/python", _HERE / "job.py", file]
    return Child("Flink", argv, log=stack.workspace.logs / f"{launch.name}.log", env=env)
