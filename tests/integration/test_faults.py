"""Two disturbances of the tests' own stack, by a trial: nothing is lost, decisions come back, and it shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deployed import Deployed
from fraud_filter.compose import env_file
from fraud_filter.config import ModeName, load
from fraud_filter.probe.probe import Probe
from lab.harness.compose_stack import ComposeStack
from lab.trials.catalogue import DISTURBANCES
from lab.trials.plan import Trial
from lab.trials.stack import StackRun


@pytest.fixture(scope="module")
def run(stack: Deployed) -> Iterator[StackRun]:
    settings, opened = load(env_file=stack.env), stack.open()
    running = {state.service for state in opened.states()}
    opened.profiles = [profile for profile in opened.profiles if profile in running]  # Grafana, where none is to be had
    with Probe(settings) as probe:
        yield StackRun(ComposeStack(opened, settings, probe, print), 2.0)


# Killed executors are replaced by Spark in micro-batch modes; in the others the query ends, and is started again.
@pytest.mark.parametrize(("name", "seen"), [("java-kill", "reason=java-gone"), ("executor-kill", "")])
def test_a_kill_loses_nothing_and_decisions_come_back(stack: Deployed, run: StackRun, name: str, seen: str) -> None:
    mode: ModeName = env_file.read(stack.env)["FRAUD_MODE"]  # type: ignore[assignment]
    act = DISTURBANCES[name].stack
    assert act
    run.steady()
    outcome = run.disturb(Trial(name, mode, mode, stage="stack"), act)
    assert outcome.error == ""
    assert outcome.audit.ok, outcome
    assert outcome.recovery_s is not None
    assert seen in outcome.seen_as
