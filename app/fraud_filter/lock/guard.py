"""Kills a process when its time is up, though the program that started both is stopped, hangs or is gone.

Run as `python guard.py PID DEADLINE`. Each line of its input is a new deadline, in seconds of `now`.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from contextlib import suppress

import psutil

#: Seconds between two looks whether the process is still there.
_LOOK_S = 1.0


def now() -> float:
    """Seconds of a clock that all processes share; where the system has one that runs on in sleep, it is that one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Guard:
    """The guard of the process `pid`, as its parent sees it. It ends with that process, or with `close`."""

    def __init__(self, pid: int, deadline: float) -> None:
        """`deadline` is a time of `now`."""
        self.pid = pid
        self._guarded = psutil.Process(pid)
        argv = [sys.executable, "-I", __file__, str(pid), repr(deadline)]
        # A session of its own: a Ctrl-C in the terminal is for its parent.
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True)

    def extend(self, deadline: float) -> None:
        """The process may live until then."""
        assert self._process.stdin  # noqa: S101 - it was asked for
        try:
            self._process.stdin.write(f"{deadline!r}\n".encode())
            self._process.stdin.flush()
        except (OSError, ValueError):  # without a guard it may not live on
            self.kill()

    def kill(self) -> None:
        """Ends the process now."""
        with suppress(psutil.NoSuchProcess):
            self._guarded.kill()

    def close(self) -> None:
        """Nobody is guarded any more; to be called when the process has ended."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin  # noqa: S101 - it was asked for
        with suppress(OSError):
            self._process.stdin.close()


def watch(pid: int, deadline: float, source: int) -> None:
    """Returns when the process is gone; kills it when the last deadline that came from `source` is over."""
    try:
        process = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return
    text, is_open = b"", True
    while process.is_running():
        left = deadline - now()
        if left <= 0:
            process.kill()
            return
        if not is_open:
            time.sleep(min(left, _LOOK_S))
        elif select.select([source], [], [], min(left, _LOOK_S))[0]:
            came = os.read(source, 4096)
            is_open = bool(came)
            *lines, text = (text + came).split(b"\n")
            deadline = float(lines[-1]) if lines else deadline


if __name__ == "__main__":
    with suppress(psutil.NoSuchProcess):
        watch(int(sys.argv[1]), float(sys.argv[2]), sys.stdin.fileno())
