"""Faults under load in a filter with features and a model: after each of them both are as if nothing had happened."""

from __future__ import annotations

from typing import Any

import pytest

from faults import events, java_of, kill_all
from filter_under_load import FEATURES, Run, audit_change, deploy, require_features, rules_with_features
from lab.harness.broker import Broker
from models import read, train
from running import Stage, wait_until

_START_S = 240


def kill_and_start_again(run: Run) -> None:
    """Kills Python and Java at one moment, once there is a state to come back to."""
    run.await_commit()
    kill_all(run.program)
    run.program.stop()
    run.program.start()
    run.await_fresh("kill -9 of the filter", _START_S)


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_features_are_right_after_kills_and_a_broker_restart(stage: Stage, broker: Broker) -> None:
    rules = rules_with_features(stage)
    with Run(stage, "real-time", rules=str(rules), real_time_duration="5 seconds") as run:
        run.await_fresh("the start", _START_S)
        kill_and_start_again(run)
        java_of(run.program).kill()
        run.await_fresh("kill -9 of Java", _START_S)
        assert run.restarts("java-gone") == 1
        run.await_commit()
        broker.stop()
        broker.start()
        run.await_fresh("a restart of the broker", _START_S)
        require_features(run.end())


@pytest.mark.timeout(900)
def test_features_and_scores_are_right_after_a_handover(spark: Any, stage: Stage) -> None:
    """Rules that change take over the state, which features that change can't; the filter then goes on."""
    with_model = f"model: model\n{FEATURES}"
    old, new = (rules_with_features(stage, name, "score >= 0", with_model) for name in ("old", "new"))
    assert "idle" in train(spark, read(old), stage.directory / "model").inputs  # null in a card's first payment
    with Run(stage, "real-time", rules=str(old), real_time_duration="5 seconds") as run:
        run.await_fresh("the start", _START_S)
        run.await_commit()
        longer = rules_with_features(stage, "longer", head=FEATURES.replace("over: 2", "over: 3"))
        refused, _ = deploy(run, longer)
        with refused:
            assert refused.wait(_START_S) == 2
            assert "holds the state of other features than the rules have" in "\n".join(refused.tail())
        run.await_fresh("the refusal", _START_S)
        program, _ = deploy(run, new)
        with program:
            wait_until(lambda: bool(events(program, "taking_over")), "it takes over", program, _START_S)
            assert not events(program, "state_not_warmed")
            wait_until(lambda: not run.program.is_alive, "the former one ends", program)
            ends = run.decisions.ends()
            wait_until(lambda: run.decisions.fresh(ends), "fresh decisions", program, _START_S)
            run.drain(program)
    require_features(audit_change(stage, new))
