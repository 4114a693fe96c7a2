"""`fraud-filter`'s own verbs as child processes on the embedded stack: the filter in a mode, and the generator."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from fraud_filter.config import ModeName, Settings, env_name
from lab.harness.embedded_stack import EmbeddedStack
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


def filter_program(
    stack: EmbeddedStack,
    mode: ModeName,
    start: Mapping[int, int],
    *,
    checkpoint: str,
    log: str,
    standby: bool = False,
    handover: bool = False,
    changes: Mapping[str, Any] | None = None,
    argv: Sequence[str] = (),
) -> Child:
    """`fraud-filter run` in `mode`.

    Args:
        start: offsets of the input topic, by partition, for an empty checkpoint.
        checkpoint: its name in the workspace, or below the settings' checkpoint where that is on no local disk; or its
            directory.
        log: name of the log file.
        standby: it waits beside the one that works on the checkpoint.
        handover: `fraud-filter handover` instead: it asks that one to end.
        changes: settings that are not the stack's.
        argv: another program that takes the same settings.
    """
    settings, workspace = stack.settings, stack.workspace
    own = settings.model_copy(
        update={
            "mode": mode,
            "checkpoint": location(settings, workspace, checkpoint),
            "starting_offsets": json.dumps({settings.input_topic: {str(p): at for p, at in start.items()}}),
            **(changes or {}),
        }
    )
    # What Spark keeps on disk goes where it is removed even when Spark has to be killed.
    env = {**environment(own), "JAVA_HOME": str(stack.java_home), "SPARK_LOCAL_DIRS": str(workspace.path / "spark")}
    name, argv = f"the filter in {mode} mode", argv or verb("run")
    if handover:
        name, argv = f"the next filter in {mode} mode", verb("handover")
    elif standby:
        name, argv = f"the standby in {mode} mode", [*argv, "--standby"]
    return Child(name, argv, log=workspace.logs / log, env=env)


def location(settings: Settings, workspace: Workspace, checkpoint: str) -> str:
    """Where the checkpoint of this name lies."""
    if settings.checkpoint_is_local:
        return str(workspace.path / checkpoint)
    return f"{settings.checkpoint.rstrip('/')}/{workspace.path.name}/{checkpoint}"


def generator_program(
    stack: EmbeddedStack, *, log: str, at_random: bool = False, replay: Path | None = None, **options: float | None
) -> Child:
    """`fraud-filter generate` with options of it, such as `rate` and `seconds`; None leaves one to the program.

    `at_random`: payments at random moments, not in even steps. `replay`: the file whose records are sent.
    """
    given = {f"--{name.replace('_', '-')}": value for name, value in options.items() if value is not None}
    words = [word for name, value in given.items() for word in (name, f"{value:.15g}")]
    words += ["--replay", str(replay)] if replay else []
    argv = [*verb("generate"), *words, *(["--at-random"] if at_random else [])]
    return Child("the payment generator", argv, log=stack.workspace.logs / log, env=environment(stack.settings))
