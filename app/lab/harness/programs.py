"""`fraud-filter`'s own verbs as child processes on the embedded stack: the filter in a mode, and the generator."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from pydantic import SecretStr

from fraud_filter.config import ModeName, Settings, env_name
from lab.harness.processes import Child
from lab.harness.workspace import Workspace


def environment(settings: Settings) -> dict[str, str]:
    """The settings as environment variables, so that a child runs with exactly these; no secrets."""
    values = settings.model_dump(mode="json")
    return {
        "PYTHONUNBUFFERED": "1",
        **{
            env_name(name): value if isinstance(value, str) else json.dumps(value)
            for name, value in values.items()
            if not isinstance(getattr(settings, name), SecretStr)
        },
    }


def verb(name: str) -> list[str]:
    """The command line of `fraud-filter NAME`, without arguments."""
    return [sys.executable, "-m", "fraud_filter", name]


def on_this_machine(settings: Settings, address: str, *, slots: int) -> Settings:
    """The user's settings, with what an embedded run decides itself: its own broker, Spark here, free ports.

    Args:
        address: of the broker, host:port.
        slots: Spark's task slots; continuous and real-time mode hold one a partition permanently.
    """
    return settings.model_copy(
        update={
            "kafka_bootstrap_servers": address,
            "kafka_security_protocol": "PLAINTEXT",
            "source": "kafka",
            "sink": "kafka",
            "checkpoint": "checkpoint",
            "spark_master": f"local[{slots}]",
            "metrics_port": 0,
            "probe_port": 0,
            "generator_port": 0,
        }
    )


def filter_program(
    settings: Settings,
    mode: ModeName,
    start: Mapping[int, int],
    workspace: Workspace,
    java_home: Path,
    *,
    checkpoint: str,
    log: str,
) -> Child:
    """`fraud-filter run` in `mode`.

    Args:
        start: offsets of the input topic, by partition, for an empty checkpoint.
        workspace: where Spark's files and log go, and the checkpoint, where `settings.checkpoint` is on a local disk.
        checkpoint: its name there, or below `settings.checkpoint`; or its directory.
        log: name of the log file.
    """
    own = settings.model_copy(
        update={
            "mode": mode,
            "checkpoint": _location(settings, workspace, checkpoint),
            "starting_offsets": json.dumps({settings.input_topic: {str(p): at for p, at in start.items()}}),
        }
    )
    # What Spark keeps on disk goes where it is removed even when Spark has to be killed.
    env = {**environment(own), "JAVA_HOME": str(java_home), "SPARK_LOCAL_DIRS": str(workspace.path / "spark")}
    return Child(f"the filter in {mode} mode", verb("run"), log=workspace.logs / log, env=env)


def _location(settings: Settings, workspace: Workspace, checkpoint: str) -> str:
    if settings.checkpoint_is_local:
        return str(workspace.path / checkpoint)
    return f"{settings.checkpoint.rstrip('/')}/{workspace.path.name}/{checkpoint}"


def generator_program(
    settings: Settings,
    *,
    rate: float,
    log: Path,
    seconds: float | None = None,
    count: int | None = None,
    flagged_share: float | None = None,
    malformed_share: float | None = None,
    seed: int | None = None,
) -> Child:
    """`fraud-filter generate`: `rate` payments/s for at most `seconds` seconds, or `count`; shares are parts of 1."""
    options = {
        "--rate": rate,
        "--seconds": seconds,
        "--count": count,
        "--flagged-share": flagged_share,
        "--malformed-share": malformed_share,
        "--seed": seed,
    }
    given = {name: value for name, value in options.items() if value is not None}
    words = [word for name, value in given.items() for word in (name, f"{value:.15g}")]
    return Child("the payment generator", [*verb("generate"), *words], log=log, env=environment(settings))
