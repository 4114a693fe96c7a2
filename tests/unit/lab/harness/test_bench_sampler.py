"""Processor time and memory of real processes, of what they start and of what has ended."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import psutil
import pytest

from lab.harness.processes import Child
from lab.harness.sampler import Sampler
from lab.harness.waiting import wait_until

#: When a file `go` lies beside it: uses a second of processor time in a child, then half a second itself, and goes on.
BURN = """
import pathlib, subprocess, sys, time
def burn(seconds):
    while time.process_time() < seconds:
        pass
if len(sys.argv) > 1:
    burn(1.0)
else:
    while not pathlib.Path(__file__).with_name("go").exists():
        time.sleep(0.02)
    subprocess.run([sys.executable, __file__, "child"], check=True)
    burn(0.5)
    held = bytearray(50_000_000)
    print("burnt", flush=True)
    time.sleep(60)
"""


def await_burnt(child: Child) -> None:
    wait_until(lambda: child.tail(1) == ["burnt"], 60, "it did not burn", [child])


def await_looks(sampler: Sampler, child: Child, count: int) -> None:
    """So many more at the program."""

    def looks() -> int:
        return len(sampler._cpu_s.get("it", ()))

    end = looks() + count
    wait_until(lambda: looks() >= end, 60, "no look came", [child])


def test_a_program_counts_with_all_that_it_has_started(tmp_path: Path) -> None:
    script = tmp_path / "burn.py"
    script.write_text(BURN)
    child = Child("a burning program", [sys.executable, script], log=tmp_path / "log")
    began = time.time()
    with child, Sampler({"it": child}) as sampler:
        await_looks(sampler, child, 1)
        (tmp_path / "go").touch()
        await_burnt(child)
        await_looks(sampler, child, 3)  # the first one may have begun before
        now = time.time()
    taken = sampler.cpu_between("it", began, now)
    assert taken is not None
    assert 0.9 < taken < 3  # what was used before the first look is not in it
    assert (sampler.cpu_between("it", now - 0.5, now) or 0) < 0.2  # it sleeps
    assert (sampler.peak_rss_mib("it") or 0) > 50


def test_what_was_not_watched_is_none() -> None:
    sampler = Sampler({})
    assert sampler.cpu_between("it", 0, 1) is None
    assert sampler.peak_rss_mib("it") is None
    assert sampler.stolen_between(0, 1) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts what others took")
def test_the_machine_is_watched_as_well(tmp_path: Path) -> None:
    script = tmp_path / "burn.py"
    script.write_text(BURN)
    (tmp_path / "go").touch()
    child = Child("a burning program", [sys.executable, script], log=tmp_path / "log")
    began, before = time.time(), psutil.cpu_times()
    with child, Sampler({"it": child}) as sampler:
        await_burnt(child)
        await_looks(sampler, child, 1)
        ended, after = time.time(), psutil.cpu_times()
    free = ("idle", "iowait", "steal", "guest", "guest_nice")
    spent = zip(before._fields, before, after, strict=True)
    busy = sum(later - sooner for name, sooner, later in spent if name not in free)
    stolen = after.steal - before.steal
    assert busy > 1  # the program alone takes more
    assert sampler.stolen_between(began, ended) == pytest.approx(stolen / (stolen + busy), abs=0.1)
