"""Processor time and memory of real processes, of what they start and of what has ended."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import psutil
import pytest

from lab.harness.processes import Child
from lab.harness.sampler import Sampler

#: Uses a second of processor time in a child, then half a second itself, and goes on.
BURN = """
import subprocess, sys, time
def burn(seconds):
    while time.process_time() < seconds:
        pass
if len(sys.argv) > 1:
    burn(1.0)
else:
    subprocess.run([sys.executable, __file__, "child"], check=True)
    burn(0.5)
    held = bytearray(50_000_000)
    print("burnt", flush=True)
    time.sleep(60)
"""


def test_a_program_counts_with_all_that_it_has_started(tmp_path: Path) -> None:
    script = tmp_path / "burn.py"
    script.write_text(BURN)
    child = Child("a burning program", [sys.executable, script], log=tmp_path / "log")
    began = time.time()
    with child, Sampler({"it": child}) as sampler:
        deadline = time.monotonic() + 60
        while child.tail(1) != ["burnt"]:
            child.raise_if_dead()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(1.2)  # two more looks
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
    began, before = time.time(), psutil.cpu_times()
    with Child("a burning program", [sys.executable, script], log=tmp_path / "log"), Sampler({}) as sampler:
        time.sleep(2.1)  # four more looks
        ended, after = time.time(), psutil.cpu_times()
    free = ("idle", "iowait", "steal", "guest", "guest_nice")
    spent = zip(before._fields, before, after, strict=True)
    busy = sum(later - sooner for name, sooner, later in spent if name not in free)
    stolen = after.steal - before.steal
    assert busy > 1  # the program alone takes one second a second
    assert sampler.stolen_between(began, ended) == pytest.approx(stolen / (stolen + busy), abs=0.1)
