"""The filter in one mode on the checkpoint of a leg: started, stopped cleanly or killed, and what its log says."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psutil

from fraud_filter.config import ModeName
from fraud_filter.errors import FraudFilterError
from lab.harness.embedded_stack import EmbeddedStack
from lab.harness.processes import Child
from lab.harness.programs import filter_program
from lab.harness.waiting import wait_until
from lab.transitions.family import each, family_of, kill_family
from lab.transitions.result import StopKind

_PARTS = re.compile(r" event=(standby_ready|taking_over|started|restarting) ")
_REPAIRED = re.compile(r'event=checkpoint_repaired .*reason="(.*)"')
#: What a stop gets beyond its own deadline before the program is killed, in seconds.
_MARGIN_S = 15
#: A filter rests for 3 seconds after it has handed over, then it waits or its Java ends.
_HANDED_OVER_S = 60


class FilterRun:
    """`fraud-filter run` as a child process."""

    def __init__(
        self,
        stack: EmbeddedStack,
        mode: ModeName,
        start: Mapping[int, int],
        *,
        checkpoint: str,
        log: str,
        standby: bool = False,
        handover: bool = False,
        changes: Mapping[str, Any] | None = None,
    ) -> None:
        """`start`: input offsets, for an empty checkpoint; `checkpoint`: its directory's name; `log`: the log's.

        `standby`: it waits for another one's end; `handover`: it asks for that; `changes`: settings of its own.
        """
        self._timeout_s = stack.settings.stop_timeout_s + _MARGIN_S
        self.mode = mode
        #: When a kill, or a hang, had stopped all of it, or when it thawed, in seconds since 1970.
        self.killed_at: float | None = None
        self.child = filter_program(
            stack, mode, start, checkpoint=checkpoint, log=log, standby=standby, handover=handover, changes=changes
        )

    def stop(self, kind: StopKind) -> int | None:
        """Stops it by SIGTERM, or kills all its processes at one moment; returns the exit code."""
        if kind == "kill" and self.child.pid and self.child.is_alive:
            self.killed_at = kill_family(self.child)
        return self.child.stop(self._timeout_s)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Within it all its processes stand still (SIGSTOP); what they then go on with counts from the end."""
        family = family_of(self.child)
        each(family, "suspend")
        try:
            yield
        finally:
            self.killed_at = time.time()
            each(family, "resume")

    def end_handed_over(self, others: Sequence[Child]) -> None:
        """Stops it once it has handed over and its Java has ended, or waits in its turn; `others` run meanwhile.

        Raises:
            FraudFilterError: it does not end, or not with success; or one of the others ended.
        """
        child = self.child
        # A signal before that would count as its end. One that is no standby ends by itself.
        has_ended = lambda: not child.is_alive or self.last_told in ("restarting", "standby_ready")  # noqa: E731
        wait_until(has_ended, _HANDED_OVER_S, f"{child.name} did not hand over", others)
        if self.stop("clean") != 0:
            raise FraudFilterError(f"{child.name} did not hand over cleanly")

    def ask(self) -> None:
        """Has a standby that waits ask for a handover at the next commit."""
        psutil.Process(self.child.pid).send_signal(signal.SIGUSR1)

    def hang_java(self) -> None:
        """Stops Spark's Java process (SIGSTOP), as one that hangs; the supervisor goes on."""
        for process in self._javas():
            process.suspend()
        self.killed_at = time.time()

    def kill_java(self) -> None:
        """Kills Spark's Java process alone, without warning; the supervisor stays."""
        for process in self._javas():
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def _javas(self) -> list[psutil.Process]:
        found = []
        for process in family_of(self.child):
            with suppress(psutil.NoSuchProcess):
                if process.name() == "java":
                    found.append(process)
        return found

    @property
    def last_told(self) -> str:
        """The last word of its log about its part: `standby_ready`, `taking_over`, `started`, `restarting`; or ""."""
        told = [match[1] for line in self.child.tail(500) if (match := _PARTS.search(line))]
        return told[-1] if told else ""

    @property
    def how(self) -> str:
        """What was done to the checkpoint before the start."""
        repairs = [match[1] for line in self.child.tail(500) if (match := _REPAIRED.search(line))]
        return "repaired: " + "; ".join(repairs) if repairs else "unchanged"
