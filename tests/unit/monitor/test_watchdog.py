"""The watchdog with a hand-driven clock: what is a stall, what is none, and what is wrong with the task slots."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from fraud_filter.config import ModeName
from fraud_filter.modes import MODES
from fraud_filter.monitor.pulse import Pulse
from fraud_filter.monitor.watchdog import WARM_UP_S, Verdict, Watchdog
from fraud_filter.spark.executors import Executor

PATIENCE_S = 60


def _executor(cores: int, name: str = "0") -> Executor:
    return Executor(name, cores, active_tasks=0, completed_tasks=0, failed_tasks=0, gc_s=0, peak_bytes={})


class Scene:
    """A query over two partitions that is looked at each second."""

    def __init__(self, *, mode: ModeName = "continuous", slots: int = 2, gives_way: bool = False) -> None:
        long = mode == "real-time"
        self.dog = Watchdog(
            partitions=2,
            mode=MODES[mode],
            patience_s=PATIENCE_S,
            commit_s=300 if long else 0,
            heartbeat_s=10 if long else None,
            now=0,
            gives_way=gives_way,
        )
        self.now = 0.0
        self.slots = slots
        self.executor = "0"
        self.committed = {0: 10, 1: 10}
        self.latest: dict[int, int] | None = {0: 10, 1: 10}
        self.work: Hashable = ()
        self.answers = True
        self._pulse: Pulse | None = None

    def look(self, seconds: int = 1, *, grow: int = 0, commit: bool = False, work: bool = False) -> Verdict:
        """Goes on second by second; returns the first verdict with a trouble, or the last."""
        verdict = Verdict()
        for _ in range(seconds):
            self.now += 1
            if self.latest is not None:
                self.latest = {number: end + grow for number, end in self.latest.items()}
                if commit:
                    self.committed = self.latest
            if work:
                self.work = self.now
            if self.answers:
                self._pulse = Pulse(self.now, (_executor(self.slots, self.executor),), self.work)
            verdict = self.dog.look(self.now, self.committed, self.latest, self._pulse)
            if verdict.trouble:
                break
        return verdict


def test_a_java_that_hangs_is_known_before_a_query_that_stalls() -> None:
    pulse = Pulse(0.0, (_executor(2),), ())
    dog = Watchdog(partitions=2, mode=MODES["real-time"], patience_s=60, answer_s=3, commit_s=300, now=0)
    assert dog.look(3.0, {0: 1, 1: 1}, {0: 1, 1: 1}, pulse, 2) == Verdict()
    assert dog.look(3.1, {0: 1, 1: 1}, None, pulse, 2).remedy == "stalled"  # also while no broker answers


def test_an_input_that_rests_is_no_stall() -> None:
    assert Scene().look(10_000) == Verdict()


def test_commits_are_progress() -> None:
    assert Scene().look(1000, grow=5, commit=True) == Verdict()


def test_what_tasks_read_is_progress_between_the_commits() -> None:
    assert Scene(mode="micro-batch").look(1000, grow=5, work=True) == Verdict()


def test_epochs_that_are_not_committed_are_a_stall_though_records_flow() -> None:
    """As Spark does after the checkpoint's disk was full."""
    scene = Scene()
    assert scene.look(PATIENCE_S + int(WARM_UP_S), grow=5, work=True) == Verdict()
    assert scene.look(1, grow=5, commit=True, work=True) == Verdict()
    began = scene.now
    verdict = scene.look(1000, grow=5, work=True)
    assert verdict.remedy == "stalled"
    assert "and the query committed nothing" in verdict.trouble
    assert PATIENCE_S < scene.now - began <= PATIENCE_S + 3


def test_epochs_of_an_input_that_rests_need_no_commit() -> None:
    scene = Scene()
    assert scene.look(30, grow=5, commit=True, work=True) == Verdict()
    assert scene.look(1000, work=True) == Verdict()


def test_an_input_that_grows_without_progress_is_a_stall() -> None:
    scene = Scene()
    assert scene.look(30, grow=5, commit=True) == Verdict()
    verdict = scene.look(1000, grow=5)
    assert verdict.remedy == "stalled"
    assert "and the query made no progress" in verdict.trouble
    assert PATIENCE_S < scene.now - 30 <= PATIENCE_S + 3


def test_the_first_sign_of_progress_may_take_longer() -> None:
    scene = Scene()
    assert scene.look(PATIENCE_S + int(WARM_UP_S), grow=5) == Verdict()
    assert scene.look(5, grow=5).remedy == "stalled"


def test_the_patience_begins_when_the_input_grows_not_at_the_last_commit() -> None:
    scene = Scene()
    scene.look(5, grow=1, commit=True)
    scene.look(3600)
    assert scene.look(1, grow=1) == Verdict()
    assert scene.look(PATIENCE_S - 2) == Verdict()
    assert scene.look(5).remedy == "stalled"


def test_epochs_that_commit_the_same_offsets_are_no_progress() -> None:
    scene = Scene()
    scene.look(5, grow=1, commit=True)
    scene.committed = dict(scene.committed)
    assert scene.look(PATIENCE_S + 5, grow=1).remedy == "stalled"


def test_no_broker_no_judgement_and_patience_anew_when_it_is_back() -> None:
    scene = Scene()
    scene.look(30, grow=1, commit=True)
    before, scene.latest = scene.latest, None
    assert scene.look(1000) == Verdict()
    scene.latest = before
    assert scene.look(PATIENCE_S, grow=1) == Verdict()
    assert scene.look(5, grow=1).remedy == "stalled"


def test_a_java_that_does_not_answer_is_a_stall_whatever_the_input() -> None:
    scene = Scene()
    scene.look(10)
    scene.answers = False
    assert scene.look(PATIENCE_S) == Verdict()
    verdict = scene.look(2)
    assert verdict.remedy == "stalled"
    assert "Java process has not answered for" in verdict.trouble


def test_too_few_slots_are_told_with_numbers_and_end_in_a_restart_when_there_are_enough() -> None:
    scene = Scene()
    assert scene.look() == Verdict()
    scene.slots = 1
    verdict = scene.look()
    assert verdict.remedy is None
    assert "2 partitions, the application has 1 task slots" in verdict.trouble
    assert scene.look().remedy is None
    scene.slots = 2
    assert scene.look().remedy == "slots-back"


def test_an_executor_that_is_replaced_between_two_looks_is_seen() -> None:
    """Spark may have failed the query by then: told as that, it would cost Java's start too."""
    for gives_way, remedy in ((False, "slots-back"), (True, "slots-lacking")):
        scene = Scene(gives_way=gives_way)
        assert scene.look(5) == Verdict()
        scene.executor = "1"
        assert scene.look().remedy == remedy


def test_an_executor_beyond_those_that_hold_tasks_may_go() -> None:
    dog = Watchdog(partitions=2, mode=MODES["real-time"], patience_s=60, commit_s=300, now=0)
    for executors in ((_executor(2, "0"), _executor(1, "1")), (_executor(2, "0"),)):
        assert dog.look(1.0, {0: 1, 1: 1}, {0: 1, 1: 1}, Pulse(1.0, executors, ())) == Verdict()


def test_the_state_of_features_takes_task_slots_too() -> None:
    dog = Watchdog(partitions=2, state_partitions=2, mode=MODES["real-time"], patience_s=60, commit_s=300, now=0)
    assert dog.slots_needed == 4
    ends = {0: 1, 1: 1}
    assert dog.look(1.0, ends, ends, Pulse(1.0, (_executor(4),), ())) == Verdict()
    lacking = dog.look(2.0, ends, ends, Pulse(2.0, (_executor(3),), ()))
    assert lacking.kind == "slots-lacking"
    assert "partitions, the state of the features 2, the application has 3 task slots: up to 1 part" in lacking.trouble
    assert dog.look(3.0, ends, ends, Pulse(3.0, (_executor(4, "1"),), ())).remedy == "slots-back"


def test_one_of_a_pair_ends_for_slots_that_it_lost_and_not_for_those_that_it_never_had() -> None:
    scene = Scene(gives_way=True)
    scene.look()
    scene.slots = 1
    assert scene.look().remedy == "slots-lacking"
    scene = Scene(gives_way=True)
    scene.look()
    scene.latest = {0: 10, 1: 10, 2: 0}
    verdict = scene.look()
    assert (verdict.kind, verdict.remedy) == ("slots-lacking", None)


@pytest.mark.parametrize("mode", ["continuous", "real-time"])
def test_added_partitions_want_a_restart_of_long_tasks_once_there_are_slots_for_them(mode: ModeName) -> None:
    scene = Scene(mode=mode)
    scene.look()
    scene.latest = {0: 10, 1: 10, 2: 0}
    verdict = scene.look()
    assert verdict.remedy is None
    assert "3 partitions, the application has 2 task slots" in verdict.trouble
    assert scene.dog.slots_needed == 3
    scene.slots = 3
    assert scene.look().remedy == "partitions-added"


def test_real_time_mode_has_its_batch_s_time_until_its_tasks_have_told_what_they_read() -> None:
    scene = Scene(mode="real-time")
    assert scene.look(300 + PATIENCE_S, grow=5) == Verdict()
    scene = Scene(mode="real-time")
    scene.look(5, grow=5, work=True)
    assert scene.look(PATIENCE_S + 8, grow=5) == Verdict()
    assert scene.look(5, grow=5).remedy == "stalled"


@pytest.mark.parametrize("slots", [0, 1])
def test_micro_batches_need_no_slot_for_each_partition(slots: int) -> None:
    scene = Scene(mode="micro-batch", slots=slots)
    assert scene.look(5) == Verdict()
    scene.latest = {0: 10, 1: 10, 2: 0}
    assert scene.look(5) == Verdict()
    assert scene.dog.slots_needed == 0


def test_an_end_that_was_unknown_for_a_while_is_no_growth() -> None:
    scene = Scene()
    scene.latest = {0: 10}
    assert scene.look(60) == Verdict()
    scene.latest = {0: 10, 1: 1_000_000}
    assert scene.look(1000) == Verdict()
    scene.latest = {0: 10}
    assert scene.look(60) == Verdict()
