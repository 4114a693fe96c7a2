"""Child processes: real ones, that end well, badly, late or not at all."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from fraud_filter.errors import FraudFilterError
from lab.harness import processes
from lab.harness.processes import Child, free_ports, kill_family, stop_signals
from lab.harness.waiting import TooLateError, let_pass, wait_until

soon = retry(
    retry=retry_if_exception_type((AssertionError, psutil.NoSuchProcess)),
    stop=stop_after_delay(60),
    wait=wait_fixed(0.05),
    reraise=True,
)


@soon
def assert_log(child: Child, line: str) -> None:
    assert line in child.tail()


@soon
def assert_runs(pid: int, program: str) -> None:
    assert psutil.Process(pid).name() == program


@soon
def assert_gone(pid: int) -> None:
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def sh(tmp_path: Path, script: str, **env: str) -> Child:
    return Child("the script", ["sh", "-c", script], log=tmp_path / "logs" / "script.log", env=env)


def test_a_child_whose_start_is_interrupted_does_not_live_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def begin(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(*args, **options))
        os.kill(os.getpid(), signal.SIGINT)
        return started[0]

    monkeypatch.setattr("lab.harness.processes.subprocess", SimpleNamespace(**vars(subprocess) | {"Popen": begin}))
    with pytest.raises(KeyboardInterrupt):
        sh(tmp_path, "exec sleep 60").start()
    assert started[0].poll() == -signal.SIGTERM
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_child_that_ignores_sigterm_is_killed_in_time(tmp_path: Path) -> None:
    child = sh(tmp_path, "trap '' TERM; echo up; while :; do sleep 0.1; done").start()
    assert_log(child, "up")
    started = time.monotonic()
    assert child.stop(timeout_s=0.5) == -signal.SIGKILL
    assert time.monotonic() - started < 15  # others get 20 s


def test_second_interrupt_while_stopping_kills_at_once(tmp_path: Path) -> None:
    """It comes when the child has been asked to end."""
    child = sh(tmp_path, f"trap 'kill -TERM {os.getpid()}' TERM; echo up; while :; do sleep 0.1; done").start()
    assert_log(child, "up")
    with stop_signals(), pytest.raises(KeyboardInterrupt):
        child.stop(timeout_s=60)
    assert child.returncode == -signal.SIGKILL


def test_what_the_child_started_ends_with_it(tmp_path: Path) -> None:
    """The grandchild ignores SIGTERM and its parent's death, as a hung JVM would."""
    script = "sh -c \"trap '' TERM; echo \\$\\$; while :; do sleep 0.1; done\" & wait"
    child = sh(tmp_path, script).start()

    @soon
    def grandchild() -> int:
        assert child.tail()
        return int(child.tail()[0])

    pid = grandchild()
    child.stop(timeout_s=1)
    assert_gone(pid)


def test_program_that_does_not_exist(tmp_path: Path) -> None:
    child = Child("the ghost", [tmp_path / "ghost"], log=tmp_path / "ghost.log")
    with pytest.raises(FraudFilterError, match=r"the ghost can't be started: .*ghost is not an executable"):
        child.start()
    assert child.stop() is None


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv (util-linux) is needed")
def test_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    parent = (
        "from pathlib import Path; import sys, time\n"
        "from lab.harness.processes import Child\n"
        f"child = Child('sleep', ['sleep', '60'], log=Path({str(tmp_path / 'log')!r})).start()\n"
        "sys.stdout.write(f'{child.pid}\\n'); sys.stdout.flush(); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert_runs(pid, "sleep")  # setpriv has set its flag
        process.kill()
    assert_gone(pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_stop_signals_interrupt_and_are_restored(number: signal.Signals) -> None:
    inherited = signal.signal(number, signal.SIG_DFL)  # the tests themselves may run under `nohup`
    try:
        with pytest.raises(KeyboardInterrupt), stop_signals():
            signal.raise_signal(number)
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, inherited)


def test_ignored_signal_stays_ignored() -> None:
    """`nohup` starts programs with SIGHUP ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_no_outgoing_connection_gets_a_port_that_was_given() -> None:
    outgoing = Path("/proc/sys/net/ipv4/ip_local_port_range")
    if not outgoing.exists():
        pytest.skip("the kernel does not say which ports it gives")
    first, last = map(int, outgoing.read_text().split())
    found = free_ports(20)
    assert len(set(found)) == 20
    assert [port for port in found if first <= port <= last] == []


def test_a_port_that_somebody_listens_on_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(processes, "_PORTS", [server.getsockname()[1]])
        assert free_ports(1) == []


def test_a_port_is_given_to_one_program_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the search and the bind of a broker lie seconds, in which another program looked as well."""
    script = "from lab.harness import processes; print(*processes.free_ports(1), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout
        port = int(other.stdout.readline())
        monkeypatch.setattr(processes, "_PORTS", [port])
        assert free_ports(1) == []
        other.communicate("\n")
    assert free_ports(1) == [port]
    assert free_ports(1) == []


# -- waiting on programs: until a condition holds, until one of them ends, or until it is too late


def test_a_wait_in_vain_says_for_what_and_how_long(tmp_path: Path) -> None:
    with sh(tmp_path, "exec sleep 60") as child, pytest.raises(TooLateError) as late:
        wait_until(lambda: False, 0.2, "nothing was flagged", [child])
    assert str(late.value) == "nothing was flagged within 0.2 s"


def test_a_wait_ends_with_the_program_that_should_bring_it_about(tmp_path: Path) -> None:
    with sh(tmp_path, "echo no room left; exit 3") as child, pytest.raises(FraudFilterError) as ended:
        wait_until(lambda: False, 60, "nothing was flagged", [child])
    assert str(ended.value) == "the script ended with exit code 3; its last lines:\n  no room left"


def test_no_time_is_lost_on_a_program_that_has_ended(tmp_path: Path) -> None:
    with sh(tmp_path, "exit 3") as child, pytest.raises(FraudFilterError, match="the script ended with exit code 3"):
        let_pass(3600, [child])


def test_a_program_that_was_killed_with_its_family_has_ended(tmp_path: Path) -> None:
    """The kernel frees its memory first; a start in the meantime would find a program that runs."""
    script = "held = bytearray(b'x') * 300_000_000; print('large', flush=True); import time; time.sleep(60)"
    with Child("a large program", [sys.executable, "-c", script], log=tmp_path / "log") as child:
        assert_log(child, "large")
        kill_family(child)
        assert not child.is_alive
