"""The filter in one mode on the checkpoint of a leg: started, stopped cleanly or killed, and what its log says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress

import psutil

from fraud_filter.config import ModeName
from lab.harness.embedded_stack import EmbeddedStack
from lab.harness.programs import filter_program
from lab.transitions.result import StopKind

_REPAIRED = re.compile(r'event=checkpoint_repaired .*reason="(.*)"')
#: What a stop gets beyond its own deadline before the program is killed, in seconds.
_MARGIN_S = 15


class FilterRun:
    """`fraud-filter run` as a child process."""

    def __init__(
        self, stack: EmbeddedStack, mode: ModeName, start: Mapping[int, int], *, checkpoint: str, log: str
    ) -> None:
        """`start`: input offsets, for an empty checkpoint; `checkpoint`: its directory's name; `log`: the log's."""
        self._timeout_s = stack.settings.stop_timeout_s + _MARGIN_S
        self.mode = mode
        self.child = filter_program(stack, mode, start, checkpoint=checkpoint, log=log)

    def stop(self, kind: StopKind) -> int | None:
        """Stops it by SIGTERM, or kills all its processes at one moment; returns the exit code."""
        if kind == "kill" and self.child.pid and self.child.is_alive:
            family = [psutil.Process(self.child.pid)]
            family += family[0].children(recursive=True)  # Java has a session of its own
            for act in ("suspend", "kill"):  # none sees the others die
                for process in family:
                    with suppress(psutil.NoSuchProcess):
                        getattr(process, act)()
        return self.child.stop(self._timeout_s)

    def kill_java(self) -> None:
        """Kills Spark's Java process alone, without warning; the supervisor stays."""
        for process in psutil.Process(self.child.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if process.name() == "java":
                    process.kill()

    @property
    def how(self) -> str:
        """What was done to the checkpoint before the start."""
        repairs = [match[1] for line in self.child.tail(500) if (match := _REPAIRED.search(line))]
        return "repaired: " + "; ".join(repairs) if repairs else "as it is"
