"""A filter under load is disturbed, as `fraud-filter lab trial` does it: decisions come back, nothing is lost.

`make test` runs what no other of its tests shows, `make test-all` each disturbance in each mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

import pytest

from fraud_filter.config import ModeName, load
from fraud_filter.kafka.topics import create_topics
from fraud_filter.tail import read_last
from lab.bench.contenders import VELOCITY_RULES
from lab.harness.embedded_stack import Scene
from lab.trials.embedded import open_scene
from lab.trials.plan import Trial
from lab.trials.result import Outcome
from lab.trials.run import run_embedded

pytestmark = [pytest.mark.timed, pytest.mark.timeout(900)]
MODES = get_args(ModeName)
#: Short batches and epochs, so that commits come, and a standby that is soon warm.
QUICK = {
    "real_time_duration": "5 seconds", "continuous_interval": "1 second", "standby_warm_up_s": 3,
    "hang_timeout_s": 10, "restart_backoff_s": 0.2,
}  # fmt: skip


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    """A broker and a generator for all trials of this file."""
    with open_scene(load(QUICK), rate=100, seconds=2, below="", say=print) as scene:
        yield scene


def trials(mode: ModeName, names: Sequence[str], to: ModeName | None = None, **fields: Any) -> list[Trial]:
    return [Trial(name, mode, to or mode, **fields) for name in names]


def require_nothing_lost(scene: Scene, planned: Sequence[Trial]) -> list[Outcome]:
    found = list(run_embedded(scene, planned))
    assert [str(one) for one in found if not one.ok] == []
    assert len(found) == len(planned)
    assert all(one.gap_s is not None and one.recovery_s is not None for one in found)
    return found


def with_settings(scene: Scene, **changes: Any) -> Scene:
    """The scene with other settings, whose topics are there."""
    stack = scene.stack.with_settings(changes)
    create_topics(stack.settings, partitions=2)
    return Scene(stack, scene.probe, scene.topic, scene.generator, scene.seconds)


def test_a_standby_goes_on_after_a_kill_and_a_hang_and_not_while_a_filter_is_frozen(scene: Scene) -> None:
    """In real-time mode, with the state of some cards, whose features the audit computes, too; each is decided."""
    own = with_settings(scene, emit="all", rules=VELOCITY_RULES)
    found = require_nothing_lost(own, trials("real-time", ["freeze", "kill", "hang"], standby=True, cards=300))
    assert all(0 < (one.gap_s or 0) <= (one.recovery_s or 0) for one in found)
    (newest,) = read_last(own.stack.settings, ["approved_topic"], 1)
    assert dict(newest.headers)["decision"] == b"approve"


def test_a_handover_takes_over_the_state_of_features(scene: Scene) -> None:
    own = with_settings(scene, rules=VELOCITY_RULES)
    (handed_over,) = require_nothing_lost(own, trials("real-time", ["handover"], standby=True, cards=300))
    assert handed_over.audit.duplicated == 0


def test_without_a_standby_a_filter_goes_on_after_each_end_of_another(scene: Scene) -> None:
    """Java alone is killed in `test_supervisor_run`."""
    require_nothing_lost(scene, trials("async-progress", ["kill", "stop"]))


@pytest.mark.exhaustive  # on the stack it is in test_stack_standby, and such a repair in test_secure
def test_a_mode_follows_another_by_a_handover(scene: Scene) -> None:
    (switched,) = require_nothing_lost(scene, trials("continuous", ["switch"], "micro-batch", standby=True))
    assert switched.seen_as.startswith("checkpoint repaired: ")


def test_rules_change_at_a_commit_to_and_fro_and_nothing_is_repeated(scene: Scene) -> None:
    """By a new filter at first, and then by the one that waits."""
    found = require_nothing_lost(scene, trials("micro-batch", ["rules"] * 2, standby=True, in_turn=True))
    assert [one.audit.duplicated for one in found] == [0, 0]
    assert [one.trial.in_turn for one in found] == [False, True]


@pytest.mark.exhaustive  # fewer records come in while no filter runs in test_modes_run
def test_what_came_in_during_an_outage_is_decided(scene: Scene) -> None:
    (caught_up,) = require_nothing_lost(scene, trials("continuous", ["outage"], records=5000))
    assert caught_up.details["records_per_s"] > 0
    assert caught_up.details["peak_mib"] > 100


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("standby", [True, False])
def test_each_mode_goes_on_after_each_disturbance(scene: Scene, mode: ModeName, standby: bool) -> None:
    require_nothing_lost(scene, trials(mode, ["kill", "java-kill", "hang", "freeze", "stop"], standby=standby))


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", MODES)
def test_each_mode_is_handed_over(scene: Scene, mode: ModeName) -> None:
    require_nothing_lost(scene, trials(mode, ["handover", "rules", "handover"], standby=True))
