"""A filter with features and a model hands over to other rules, then to other features; the audit confirms them."""

from __future__ import annotations

from typing import Any

import pytest

from faults import events
from filter_under_load import FEATURES, Run, audit_change, deploy, require_features, rules_with_features
from models import read, train
from running import Stage, wait_until

_START_S = 240


@pytest.mark.timeout(900)
def test_features_and_scores_are_right_after_handovers(spark: Any, stage: Stage) -> None:
    """Rules that change take over the state, which features that change can't; the filter then goes on."""
    with_model = f"model: model\n{FEATURES}"
    old, new = (rules_with_features(stage, name, "score >= 0", with_model) for name in ("old", "new"))
    assert "idle" in train(spark, read(old), stage.directory / "model").inputs  # null in a card's first payment
    with Run(stage, "real-time", rules=str(old), real_time_duration="5 seconds") as run:
        run.await_fresh("the start", _START_S)
        run.await_commit()
        program, _ = deploy(run, new)
        with program:
            wait_until(lambda: bool(events(program, "taking_over")), "it takes over", program, _START_S)
            assert not events(program, "state_not_warmed")
            wait_until(lambda: not run.program.is_alive, "the former one ends", program)
            ends = run.decisions.ends()
            wait_until(lambda: run.decisions.fresh(ends), "fresh decisions", program, _START_S)
            longer = rules_with_features(stage, "longer", head=FEATURES.replace("over: 2", "over: 3"))
            last, _ = deploy(run, longer)
            with last:
                wait_until(lambda: bool(events(last, "rebuilding_state")), "it makes its state", last, _START_S)
                ends = run.decisions.ends()
                wait_until(lambda: run.decisions.fresh(ends), "fresh decisions", last, _START_S)
                run.drain(last)
    require_features(audit_change(stage, longer, versions=3))
