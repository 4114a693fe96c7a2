"""A program with all its processes, stopped or killed at one moment: none of them sees the others go."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Literal

import psutil

from lab.harness.processes import Child


def kill_family(child: Child) -> float:
    """Kills a running program (SIGKILL); returns when all of it had stopped, in seconds since 1970."""
    family = family_of(child)
    each(family, "suspend")
    at = time.time()
    each(family, "kill")
    return at


def family_of(child: Child) -> list[psutil.Process]:
    """The program's process and those that it has started, Spark's Java with its own session among them."""
    own = psutil.Process(child.pid)
    return [own, *own.children(recursive=True)]


def each(family: list[psutil.Process], act: Literal["suspend", "resume", "kill"]) -> None:
    """Does it to all of them that are still there."""
    for process in family:
        with suppress(psutil.NoSuchProcess):
            getattr(process, act)()
