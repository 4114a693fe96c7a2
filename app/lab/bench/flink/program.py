"""Flink as a child process: where it is installed, how it is configured for latency, and how it is started."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import jinja2

from fraud_filter.config import Settings
from fraud_filter.home import HOME
from fraud_filter.java.jars import LOCK_NAME, resolve_jars
from fraud_filter.kafka.admin import find_input, open_admin
from fraud_filter.records import most_written_bytes
from lab.bench.launch import JAVA_OPTIONS, Launch, blocked_ids
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
#: The end of a load, where the source parses: a value that is JSON and no payment.
PARSED_MARK = b"{}"
#: Transactions, which a consumer sees when a checkpoint commits them.
EXACTLY_ONCE = {_MODE: "EXACTLY_ONCE", "execution.checkpointing.interval": "100 ms"}


def lacks() -> str:
    """What must be done before Flink can be started; empty when nothing."""
    return "" if (_VENV / ".ready").exists() else "run `make bench-flink` first (Apache Flink, about 800 MB)"


def versions() -> dict[str, str]:
    """The version of Flink."""
    folders = [str(folder) for folder in _VENV.glob("lib/python*/site-packages")]
    found = next(iter(metadata.distributions(name="apache-flink", path=folders)), None)
    return {"flink": found.version if found else "unknown"}


def program(launch: Launch, *, is_parsed: bool = False, windows: bool = False) -> Child:
    """The job, not started yet; where the settings have a query of the user's it copies each record.

    Args:
        is_parsed: the source parses payments, each once, in place of a JSON function for each field.
        windows: it has the rules of velocity.yml.
    """
    stack, settings = launch.stack, launch.stack.settings
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
    text = render(
        settings,
        launch.start,
        find_input(open_admin(settings), settings).id,
        transactions=transactions,
        is_parsed=is_parsed,
        windows=windows,
        is_copy=bool(settings.query),
    )
    *before, statement = text.split(";\n")
    job = {
        "settings": options,
        "checkpoints": str(checkpoints),
        "before": before,
        "statement": statement,
        "plan": str(launch.plan),
    }
    file = folder / "job.json"
    file.write_text(json.dumps(job, indent=1), encoding="utf-8")
    env = {
        "JAVA_HOME": str(stack.java_home),
        "JDK_JAVA_OPTIONS": JAVA_OPTIONS,
        "FLINK_LOG_DIR": str(folder),
        "PYTHONUNBUFFERED": "1",
    }
    argv = [_VENV / "bin/python", _HERE / "job.py", file]
    return Child("Flink", argv, log=stack.workspace.logs / f"{launch.name}.log", env=env)


def render(settings: Settings, start: Mapping[int, int], topic_id: str, **variant: str | bool) -> str:
    """The statements of job.sql.j2.

    Args:
        start: offsets, by partition of the input.
        topic_id: the input topic's, for a header.
        variant: what else it asks for; `transactions` is how the names of transactions begin, empty: without.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE), undefined=jinja2.StrictUndefined, extensions=["jinja2.ext.do"],
        autoescape=False,  # noqa: S701 - no page
    )  # fmt: skip
    environment.filters["text"] = _text
    return environment.get_template("job.sql.j2").render(
        brokers=settings.kafka_bootstrap_servers,
        topics={name: getattr(settings, f"{name}_topic") for name in ("input", "flagged", "rejected")},
        offsets=";".join(f"partition:{partition},offset:{offset}" for partition, offset in start.items()),
        topic_id=topic_id,
        blocked={name: ", ".join(map(_text, ids)) for name, ids in blocked_ids(settings).items()},
        most_bytes=most_written_bytes(settings),
        time_format="yyyy-MM-dd'T'HH:mm:ss.SSSX",
        **variant,
    )


def _text(value: str) -> str:
    """A literal."""
    return "'" + value.replace("'", "''") + "'"
