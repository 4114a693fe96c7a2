"""A handover: a warm filter with other rules takes over at a commit, and what is refused changes nothing."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from faults import events, kill_all, metrics
from filter_under_load import Run, audit_change, deploy, write_rules
from lab.harness.processes import Child
from running import START_S, Stage, wait_until


def rules_of(stage: Stage, name: str, when: str) -> Path:
    return write_rules(stage.directory / f"{name}.yml", name, when)


@pytest.mark.timeout(600)
def test_rules_are_deployed_under_load_at_once(stage: Stage) -> None:
    """At a commit, in real-time mode, is the next test; in micro-batch mode `test_trials` does it."""
    old, new = rules_of(stage, "old", "amount > 5"), rules_of(stage, "new", "amount > 5000")
    with Run(stage, "continuous", rules=str(old)) as run:
        run.await_fresh("the start", START_S)
        program, port = deploy(run, new, "--now")
        with program:
            wait_until(lambda: bool(events(program, "taking_over")), "it takes over", program, START_S)
            until_ended = lambda: not run.program.is_alive  # noqa: E731
            wait_until(until_ended, "the former one ends", program)
            assert events(run.program, "handed_over"), run.program.tail()
            assert run.program.stop() == 0
            ends = run.decisions.ends()
            wait_until(lambda: run.decisions.fresh(ends), "fresh decisions", program)
            (version,) = (name.partition("/")[2] for name in metrics(port, "version") if "rules_info" in name)
            run.drain(program)
    result = audit_change(stage, new)
    print(f"measured handover at once: {result.duplicated} duplicated")  # noqa: T201 - shown by -s
    assert version in result.versions
    assert not (stage.directory / "checkpoint/fraud-filter/handover.json").exists()


def await_ready(program: Child, times: int) -> None:
    """Until it is warm for so many times."""
    wait_until(lambda: len(events(program, "standby_ready")) >= times, "it waits, warm", program, START_S)


@pytest.mark.timeout(600)
def test_a_former_filter_that_was_started_as_a_standby_is_the_way_back(stage: Stage) -> None:
    """On purpose, with its own rules, and then when the other one is killed."""
    old, new = rules_of(stage, "old", "amount > 5"), rules_of(stage, "new", "amount > 5000")
    with Run(stage, "real-time", rules=str(old), standby_warm_up_s="3", real_time_duration="5 seconds") as run:
        run.program.stop()
        run.program._argv.append("--standby")
        run.program.start()
        run.await_fresh("the start", START_S)
        program, port = deploy(run, new, "--standby-warm-up-s", "1")
        with program:
            wait_until(lambda: bool(events(program, "started")), "it takes over", program, START_S)
            assert int(events(program, "warmed_up")[0].rpartition(" payments=")[2]) > 0
            await_ready(run.program, 1)
            psutil.Process(run.program.pid).send_signal(signal.SIGUSR1)
            wait_until(lambda: bool(events(run.program, "taking_over")), "it takes over again", run.program, START_S)
            wait_until(lambda: bool(events(run.program, "started")[1:]), "it works again", run.program, START_S)
            (version,) = (name.partition("/")[2] for name in metrics(run.port, "version") if "rules_info" in name)
            run.await_fresh("the rollback", START_S)
            await_ready(program, 2)
            wait_until(lambda: metrics(port)["fraud_filter_standby_differs"] == 1, "it says that it differs", program)
            kill_all(run.program)
            wait_until(lambda: len(events(program, "taking_over")) == 2, "it comes back", program, START_S)
            ends = run.decisions.ends()
            wait_until(lambda: run.decisions.fresh(ends), "fresh decisions after the kill", program, START_S)
            run.drain(program)
    result = audit_change(stage, new)
    assert version in result.versions
    assert not (stage.directory / "checkpoint/fraud-filter/handover.json").exists()


def test_a_broken_file_is_refused_and_the_old_rules_stay(stage: Stage) -> None:
    old = rules_of(stage, "old", "amount > 5")
    with Run(stage, "micro-batch", rules=str(old)) as run:
        run.await_fresh("the start", START_S)
        for when, reason in (("amount >", "line 2, rule 'broken'"), ("amount > rand()", "line 2, rule 'broken'")):
            program, _ = deploy(run, rules_of(stage, "broken", when))
            argv, env = program._argv, {**os.environ, **program._env}
            done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=START_S, check=False)
            assert done.returncode == 2, done.stderr
            assert reason in done.stderr
        run.await_fresh("the refusals")
        assert not events(run.program, "handover_asked")
