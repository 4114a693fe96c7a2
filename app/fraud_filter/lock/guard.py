"""Kills a process when its time is up, though the program that started both is stopped, hangs or is gone.

Run as `python guard.py PID DEADLINE [PATH DEVICE:INODE]`. Each line of its input is a new deadline, in
seconds of `now`. With a path, the process is also killed when the path no longer names that file.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

#: Seconds between two looks whether the process is still there.
_LOOK_S = 1.0


def now() -> float:
    """Seconds of a clock that all processes share; where the system has one that runs on in sleep, it is that one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Guard:
    """The guard of the process `pid`, as its parent sees it. It ends with that process, or with `close`."""

    def __init__(self, pid: int, deadline: float, *, path: Path | None = None, file: int = -1) -> None:
        """`deadline` is a time of `now`; `path`, if any, has to name the open `file` (a descriptor)."""
        self.pid = pid
        self._guarded = psutil.Process(pid)
        argv = [sys.executable, "-I", __file__, str(pid), repr(deadline)]
        if path:
            argv += [str(path), identity(os.fstat(file))]
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


def identity(found: os.stat_result) -> str:
    """What tells a file from all others, while it is open somewhere."""
    return f"{found.st_dev}:{found.st_ino}"


def names(path: str, file: str) -> bool:
    """Whether `path` names the file with that `identity`; a path that can't be looked at names none."""
    try:
        return identity(Path(path).stat()) == file
    except OSError:
        return False


def watch(pid: int, deadline: float, source: int, path: str = "", file: str = "") -> None:
    """Returns when the process is gone; kills it when the last deadline that came from `source` is over.

    And when `path`, if one is given, does not name `file`.
    """
    try:
        process = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return
    text, is_open = b"", True
    while process.is_running():
        left = deadline - now()
        if left <= 0 or (path and not names(path, file)):
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
        watch(int(sys.argv[1]), float(sys.argv[2]), sys.stdin.fileno(), *sys.argv[3:])
