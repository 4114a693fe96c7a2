"""Child processes that never outlive us, and ports for them."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from fraud_filter.errors import FraudFilterError
from fraud_filter.stop_signals import handled

#: How long the processes that a child has started may live on after it, in seconds.
_FAMILY_GRACE_S = 5.0
_POLL_S = 0.02
#: Lines of a log that an error message quotes, and what it leaves out: the frames of Java's stack traces.
_QUOTED = 10
_STACK_FRAMES = ("\tat ", "\t... ")
#: Below those that the kernel gives outgoing connections (Linux, ip_local_port_range), which would take one of ours.
_PORTS = range(12_000, 32_768)
_HOST = "127.0.0.1"
_kept_ports: list[socket.socket] = []


class Child:
    """A program that runs in its own session, with its output in a log file.

    Its own session keeps a Ctrl-C in the terminal from it: whoever started it stops it, in the right order.
    Should we die without a chance to do so, the kernel sends it SIGTERM (Linux, through util-linux'
    `setpriv`; it watches the thread that called `start`, hence only when that is the main thread).
    """

    def __init__(
        self, name: str, argv: Sequence[str | Path], *, log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        """`name` is for messages; `env` is added to our own environment; `log` is appended to."""
        self.name = name
        self.log = log
        self._argv = [str(word) for word in argv]
        self._env = dict(env or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._group = 0

    def start(self) -> Child:
        """Starts the program.

        Raises:
            FraudFilterError: it can't be started.
        """
        if shutil.which(self._argv[0]) is None:
            raise FraudFilterError(f"{self.name} can't be started: {self._argv[0]} is not an executable program")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self.log.open("ab") as log, _signals_held_back():
                self._process = subprocess.Popen(
                    [*_die_with_us(), *self._argv],
                    env={**os.environ, **self._env},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                self._group = self._process.pid
        except OSError as error:
            raise FraudFilterError(f"{self.name} can't be started: {error}") from None
        except BaseException:  # what a signal raises that came meanwhile
            self.stop()
            raise
        return self

    @property
    def pid(self) -> int | None:
        """The process id, None before the start."""
        return self._process.pid if self._process else None

    @property
    def returncode(self) -> int | None:
        """The exit code (negative: ended by that signal), None while it runs or before the start."""
        return self._process.poll() if self._process else None

    @property
    def is_alive(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def raise_if_dead(self) -> None:
        """Does nothing while the program runs.

        Raises:
            FraudFilterError: it has ended, on which the message quotes the end of its log.
        """
        if not self.is_alive:
            lines = [line for line in self.tail(200) if not line.startswith(_STACK_FRAMES)][-_QUOTED:]
            end = "\n".join(f"  {line}" for line in lines) or "  (it wrote nothing)"
            raise FraudFilterError(f"{self.name} ended with exit code {self.returncode}; its last lines:\n{end}")

    def tail(self, lines: int = 20) -> list[str]:
        """The last `lines` lines of the log."""
        with suppress(FileNotFoundError), self.log.open(encoding="utf-8", errors="replace") as log:
            return [line.rstrip("\n") for line in deque(log, maxlen=lines)]
        return []

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Waits for the program's own end; returns its exit code, or None if it runs on after `timeout_s`."""
        if self._process is None:
            return None
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, timeout_s: float = 20) -> int | None:
        """Ends the program and everything that it started; returns its exit code.

        SIGTERM first; what is left after `timeout_s` seconds, or at a second Ctrl-C, is killed.
        """
        if self._process is None:
            return None
        try:
            if self._process.poll() is None:
                self._process.terminate()
                self.wait(timeout_s)
            self._wait_for_family(_FAMILY_GRACE_S)
        finally:
            self._signal_family(signal.SIGKILL)
            self._process.wait()
            self._group = 0  # the number may soon be somebody else's
        return self._process.returncode

    def _wait_for_family(self, timeout_s: float) -> None:
        """Gives what the ended program started (Spark's JVM, say) time to end and to clean up, too."""
        end = time.monotonic() + timeout_s
        while self._process and self._process.poll() is not None and time.monotonic() < end:
            if not self._signal_family(0):
                return
            time.sleep(_POLL_S)

    def _signal_family(self, number: int) -> bool:
        """Signals all processes of the session's group; returns whether there were any."""
        if not self._group:
            return False
        try:
            os.killpg(self._group, number)
        except (ProcessLookupError, PermissionError):  # macOS gives the latter for a group of zombies
            return False
        return True

    def __enter__(self) -> Child:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def family_of(child: Child) -> list[psutil.Process]:
    """The program's process and those that it has started, Spark's Java with its own session among them."""
    own = psutil.Process(child.pid)
    return [own, *own.children(recursive=True)]


def signal_each(family: Sequence[psutil.Process], number: int) -> None:
    """Signals all of them that are still there."""
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def kill_family(child: Child) -> float:
    """Kills a running program with all its processes at one moment: none of them sees the others go.

    Returns:
        when all of it had stopped, in seconds since 1970.
    """
    family = family_of(child)
    signal_each(family, signal.SIGSTOP)
    at = time.time()
    signal_each(family, signal.SIGKILL)
    child.wait(60)  # else a start that follows could find it running
    return at


def _die_with_us() -> list[str]:
    """Words before a command that make the kernel send it SIGTERM when we are gone, where that can be had."""
    setpriv = shutil.which("setpriv")
    if setpriv is None or threading.current_thread() is not threading.main_thread():
        return []
    return [setpriv, "--pdeathsig", "TERM", "--"]


@contextmanager
def _signals_held_back() -> Iterator[None]:
    """What signals do, they do after the block: an exception within `Popen` would lose the process that it started."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    try:
        with handled(_heeded(signal.SIGINT, signal.SIGTERM, signal.SIGHUP), lambda number, _: came.append(number)):
            yield
    finally:
        for number in came:
            signal.raise_signal(number)


def _heeded(*numbers: signal.Signals) -> list[signal.Signals]:
    """Those that are not ignored: nohup meant it."""
    return [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]


@contextmanager
def stop_signals() -> Iterator[None]:
    """Within it SIGTERM and SIGHUP do what Ctrl-C does, so that all is cleaned up. Call it in the main thread."""
    with handled(_heeded(signal.SIGTERM, signal.SIGHUP), signal.default_int_handler):
        yield


def free_ports(count: int) -> list[int]:
    """So many ports of this machine's own address, 127.0.0.1, that nobody listens on now.

    They stay ours as long as this program lives: no other program's call finds them, though nothing listens on
    them yet or for a while. What keeps them is a UDP socket of the same number; TCP is left to who needs the port.
    """
    found: list[int] = []
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):  # a seed would give two programs the same
        if len(found) == count:
            break
        kept = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            kept.bind((_HOST, port))
            with socket.socket() as probe:
                probe.bind((_HOST, port))
        except OSError:
            kept.close()
            continue
        _kept_ports.append(kept)
        found.append(port)
    return found
