"""The filter in one mode on a checkpoint: started, stopped cleanly, killed or hung, and what its log says."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import psutil

from fraud_filter.errors import FraudFilterError
from lab.harness.processes import Child, family_of, kill_family, signal_each
from lab.harness.waiting import wait_until

_PARTS = re.compile(r" event=(standby_ready|taking_over|started|restarting) ")
_REPAIRED = re.compile(r'event=checkpoint_repaired .*reason="(.*)"')
#: What a stop gets beyond its own deadline before the program is killed, in seconds.
_MARGIN_S = 15
#: A filter rests for 3 seconds after it has handed over, then it waits or its Java ends.
_HANDED_OVER_S = 60


class FilterRun:
    """`fraud-filter run` as a child process."""

    def __init__(self, child: Child, stop_timeout_s: float) -> None:
        """`child`: the program, not started; `stop_timeout_s`: the setting of that name."""
        self.child = child
        self._timeout_s = stop_timeout_s + _MARGIN_S

    def stop(self) -> int | None:
        """Stops it by SIGTERM; returns the exit code."""
        return self.child.stop(self._timeout_s)

    def stop_cleanly(self) -> None:
        """Stops it by SIGTERM.

        Raises:
            FraudFilterError: its exit code tells of a failure.
        """
        if self.stop() != 0:
            raise FraudFilterError(f"{self.child.name} did not stop cleanly: exit code {self.child.returncode}")

    def kill(self) -> float:
        """Kills all its processes at one moment; returns it, in seconds since 1970."""
        at = kill_family(self.child)
        self.child.stop()
        return at

    def signal_java(self, number: int) -> float:
        """Signals Spark's Java process alone; the supervisor goes on. Returns when, in seconds since 1970."""
        javas = []
        for process in family_of(self.child):
            with suppress(psutil.NoSuchProcess):
                if process.name() == "java":
                    javas.append(process)
        signal_each(javas, number)
        return time.time()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Within it all its processes stand still (SIGSTOP)."""
        family = family_of(self.child)
        signal_each(family, signal.SIGSTOP)
        try:
            yield
        finally:
            signal_each(family, signal.SIGCONT)

    def end_handed_over(self, others: Sequence[Child]) -> None:
        """Stops it once it has handed over and its Java has ended, or waits in its turn; `others` run meanwhile.

        Raises:
            FraudFilterError: it does not end, or not with success; or one of the others ended.
        """
        child = self.child
        # A signal before that would count as its end. One that is no standby ends by itself.
        has_ended = lambda: not child.is_alive or self.last_told in ("restarting", "standby_ready")  # noqa: E731
        wait_until(has_ended, _HANDED_OVER_S, f"{child.name} did not hand over", others)
        self.stop_cleanly()

    def ask(self) -> None:
        """Has a standby that waits ask for a handover at the next commit."""
        psutil.Process(self.child.pid).send_signal(signal.SIGUSR1)

    @property
    def last_told(self) -> str:
        """The last word of its log about its part: `standby_ready`, `taking_over`, `started`, `restarting`; or ""."""
        told = [match[1] for line in self.child.tail(500) if (match := _PARTS.search(line))]
        return told[-1] if told else ""

    @property
    def is_waiting(self) -> bool:
        """Whether the last word of its log about its part is that it waits."""
        return self.last_told == "standby_ready"

    @property
    def how(self) -> str:
        """What was done to the checkpoint before the start."""
        repairs = [match[1] for line in self.child.tail(500) if (match := _REPAIRED.search(line))]
        return "checkpoint repaired: " + "; ".join(repairs) if repairs else ""
