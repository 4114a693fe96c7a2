"""Repairs of checkpoints: those that Spark really left, those that go wrong, and thousands that random kills leave."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from fraud_filter import modes
from fraud_filter.checkpoint.plan import (
    Plan,
    Remove,
    UnfitStateError,
    UnrepairableError,
    Write,
    plan_done,
    plan_repair,
    plan_skip,
)
from fraud_filter.config import ModeName
from logbook import (
    BEGIN,
    COMMIT,
    CanNotStartError,
    Files,
    Query,
    apply,
    contents_of,
    damage,
    entry,
    read_directory,
    start_of,
)

DATA = Path(__file__).parents[2] / "data" / "checkpoints"
MODES: tuple[ModeName, ...] = get_args(ModeName)
OTHERS: tuple[ModeName, ...] = ("micro-batch", "async-progress", "real-time")
NOW_MS = 1_800_000_000_000
INITIAL = b'\0v1\n{"payments":{"0":1000}}'


def plan(files: Files, mode: ModeName) -> Plan:
    return plan_repair(contents_of(files), mode, NOW_MS)


def paths(found: Plan) -> list[str]:
    return [f"{'write' if isinstance(step, Write) else 'remove'} {step.path}" for step in found.steps]


@pytest.mark.parametrize("mode", OTHERS)
def test_a_recorded_checkpoint_of_a_killed_continuous_query(mode: ModeName) -> None:
    files = read_directory(DATA / "continuous-killed")  # epoch 4 was reported and not committed
    with pytest.raises(CanNotStartError):
        start_of(files, mode)
    found = plan(files, mode)
    assert paths(found) == ["remove offsets/4", "write offsets/3"]
    (written,) = [step for step in found.steps if isinstance(step, Write)]
    version, metadata, source = files["offsets/3"].decode().split("\n")
    assert metadata == ""
    conf = '{"spark.sql.shuffle.partitions":"200"}'
    expected = f'{version}\n{{"batchWatermarkMs":0,"batchTimestampMs":{NOW_MS},"conf":{conf}}}\n{source}'
    assert written.content.decode() == expected
    assert start_of(apply(files, found.steps), mode) == start_of(files, "continuous")
    # Its own engine would not log epoch 4 again, and its commit would claim what the killed query had read.
    assert paths(plan(files, "continuous")) == ["remove offsets/4"]


@pytest.mark.parametrize("recorded", ["micro-batch-killed", "real-time-killed"])
@pytest.mark.parametrize("mode", MODES)
def test_recorded_checkpoints_of_the_other_engines(recorded: str, mode: ModeName) -> None:
    files = read_directory(DATA / recorded)
    pending = recorded == "micro-batch-killed"  # batch 1 was planned and not committed
    assert paths(plan(files, mode)) == (["remove offsets/1"] if pending and mode in ("real-time", "continuous") else [])


def checkpoint(offsets: dict[int, int], commits: list[int], *, metadata: bool = True) -> Files:
    return {
        **{f"offsets/{number}": entry(number, at, metadata=metadata) for number, at in offsets.items()},
        **{f"commits/{number}": COMMIT for number in commits},
    }


def test_a_gap_of_async_progress_is_filled_for_micro_batch_only() -> None:
    files = checkpoint({0: 10, 3: 40, 7: 80}, [0, 3, 7])
    with pytest.raises(CanNotStartError, match="batch 6 doesn't exist"):
        start_of(files, "micro-batch")
    found = plan(files, "micro-batch")
    assert paths(found) == ["write offsets/6"]
    assert start_of(apply(files, found.steps), "micro-batch") == 80
    for mode in ("async-progress", "continuous", "real-time"):
        assert plan(files, mode).steps == ()
        assert start_of(files, mode) == 80


def test_an_async_batch_that_is_not_committed_runs_again_from_the_committed_one() -> None:
    files = checkpoint({0: 10, 3: 40, 7: 80}, [0, 3])
    found = plan(files, "micro-batch")
    assert paths(found) == ["write offsets/6"]
    assert start_of(apply(files, found.steps), "micro-batch") == 40
    assert paths(plan(files, "real-time")) == ["remove offsets/7"]


def test_batches_that_spark_would_take_for_done_are_read_again() -> None:
    files = checkpoint({4: 50, 5: 60, 6: 70, 7: 80}, [4])
    assert start_of(files, "micro-batch") == 70  # Spark's own choice skips what lies between 50 and 70
    found = plan(files, "micro-batch")
    assert paths(found) == ["write offsets/6"]
    assert start_of(apply(files, found.steps), "micro-batch") == 50
    assert "not committed" in found.reasons[0]


@pytest.mark.parametrize("mode", MODES)
def test_a_newest_entry_that_is_cut_off_is_read_again(mode: ModeName) -> None:
    files = checkpoint({4: 50, 5: 60, 6: 70}, [4, 5, 6])
    files["offsets/6"] = files["offsets/6"][:-4]
    with pytest.raises(CanNotStartError):
        start_of(files, mode)
    found = plan(files, mode)
    assert "offset entry of the committed batch 6 is broken" in found.reasons[0]
    assert start_of(apply(files, found.steps), mode) == 60


@pytest.mark.parametrize("mode", MODES)
def test_a_commit_that_is_cut_off_counts_as_none(mode: ModeName) -> None:
    files = checkpoint({4: 50, 5: 60}, [4, 5])
    files["commits/5"] = b""
    with pytest.raises(CanNotStartError):
        start_of(files, mode)
    assert start_of(apply(files, plan(files, mode).steps), mode) == 50


def test_continuous_mode_begins_where_the_query_first_began() -> None:
    files = {"sources/0/0": INITIAL}
    assert start_of(files, "real-time") == 1000
    assert start_of(files, "continuous") is None  # startingOffsets: perhaps later than that
    found = plan(files, "continuous")
    assert paths(found) == ["write offsets/0", "write commits/0"]
    for mode in MODES:
        assert start_of(apply(files, found.steps), mode) == 1000


def test_temporary_files_of_a_query_killed_at_its_start_go() -> None:
    files = {"offsets/.0.1234.tmp": b""}
    assert paths(plan(files, "micro-batch")) == ["remove offsets/.0.1234.tmp"]
    assert plan(files, "continuous").steps == ()


def test_nothing_committed_by_continuous_mode_begins_anew() -> None:
    found = plan(checkpoint({0: 10}, [], metadata=False), "micro-batch")
    assert (paths(found), found.begins_anew) == (["remove offsets/0"], True)


@pytest.mark.parametrize("files", [checkpoint({7: 80, 8: 90}, []), checkpoint({}, [7, 8])])
@pytest.mark.parametrize("mode", MODES)
def test_what_nothing_proves_is_refused(files: Files, mode: ModeName) -> None:
    with pytest.raises(UnrepairableError, match="nothing proves what was written"):
        plan(files, mode)


def test_a_checkpoint_with_state_is_refused_but_not_one_that_needs_no_repair() -> None:
    whole = replace(contents_of(checkpoint({0: 1, 1: 2}, [0, 1])), stateful=True)
    gap = replace(contents_of(checkpoint({0: 1, 2: 3}, [0, 2])), stateful=True)
    assert plan_repair(whole, "micro-batch", NOW_MS).steps == ()
    with pytest.raises(UnfitStateError, match="the state fits its own batches only"):
        plan_repair(gap, "micro-batch", NOW_MS)


@pytest.mark.parametrize("block", range(10))
def test_whatever_was_killed_and_broken_no_step_of_a_repair_skips_a_record(block: int) -> None:
    for seed in range(block * 150, block * 150 + 150):
        chance = random.Random(seed)
        query = Query(chance)
        for _ in range(chance.randint(1, 6)):
            mode = chance.choice(MODES)
            query.files = apply(query.files, plan(query.files, mode).steps)
            query.run(mode)
        if chance.random() < 0.5:
            damage(query.files, chance)
        _check(query, chance.choice(MODES))


def _check(query: Query, target: ModeName) -> None:
    before = {mode: _start(query.files, mode) for mode in MODES}
    try:
        found = plan(query.files, target)
    except UnrepairableError:
        return
    files = query.files
    for step in (None, *found.steps):
        files = apply(files, [step]) if step else files
        for mode in MODES:  # any engine, started on what a killed repair left
            start = _start(files, mode)
            assert start is None or start <= max(query.written, before[mode] or 0), (mode, found)
        rest = plan(files, target)
        mended = apply(files, rest.steps)
        start = start_of(mended, target)
        assert (BEGIN if start is None else start) <= query.written, (target, rest)
        assert plan(mended, target).steps == ()


def _start(files: Files, mode: ModeName) -> int | None:
    try:
        return start_of(files, mode)
    except CanNotStartError:
        return None


def test_records_that_are_gone_are_passed_by_moving_the_committed_end() -> None:
    files = read_directory(DATA / "real-time-killed")
    found = plan_skip(contents_of(files), "real-time", "payments", {0: 7, 1: 9})
    assert paths(found) == ["write offsets/0"]
    after = apply(files, found.steps)
    assert after["offsets/0"].decode().splitlines()[:2] == files["offsets/0"].decode().splitlines()[:2]
    assert json.loads(after["offsets/0"].decode().splitlines()[2]) == {"payments": {"0": 7, "1": 9}}
    assert plan(after, "real-time").steps == ()


def test_a_planned_batch_goes_when_the_records_before_it_are_gone() -> None:
    files = read_directory(DATA / "real-time-killed")
    planned = {**files, "offsets/1": files["offsets/0"]}
    assert paths(plan_skip(contents_of(planned), "micro-batch", "payments", {0: 7})) == [
        "remove offsets/1",
        "write offsets/0",
    ]


def test_where_nothing_is_committed_the_query_begins_again() -> None:
    files = {"offsets/0": read_directory(DATA / "real-time-killed")["offsets/0"]}
    files["sources/0/0"] = b'\0v1\n{"payments":{"0":3}}'
    found = plan_skip(contents_of(files), "real-time", "payments", {0: 7})
    assert paths(found) == ["remove offsets/0", "remove sources"]


@pytest.mark.parametrize("mode", MODES)
def test_a_query_begins_behind_what_is_decided_though_nothing_is_committed(mode: ModeName) -> None:
    began = {"sources/0/0": INITIAL}
    for files in ({}, began, {**began, **checkpoint({0: 1004, 1: 1010}, [])}):
        files = apply(files, plan(files, mode).steps)
        found = plan_done(contents_of(files), mode, "payments", {0: 1020}, NOW_MS)
        assert start_of(apply(files, found.steps), mode) == 1020


@pytest.mark.parametrize("block", range(5))
def test_what_is_decided_is_passed_and_nothing_else_wherever_that_is_cut_off(block: int) -> None:
    for seed in range(block * 100, block * 100 + 100):
        chance = random.Random(seed)
        query, target = Query(chance), chance.choice(MODES)
        for mode in (*chance.choices(MODES, k=chance.randint(1, 4)), target):
            query.files = apply(query.files, plan(query.files, mode).steps)
            query.run(mode)
        files = apply(query.files, plan(query.files, target).steps)
        found = plan_done(contents_of(files), target, "payments", {0: query.written}, NOW_MS)
        for step in found.steps:
            files = apply(files, [step])
            for mode in MODES:
                start = start_of(apply(files, plan(files, mode).steps), mode)
                assert start is None or start <= query.written, (mode, found)
        assert start_of(files, target) == query.written, (target, found)
        assert plan(files, target).steps == ()


@pytest.mark.parametrize("twin", MODES)
def test_a_made_up_mode_is_planned_by_its_values(twin: ModeName, monkeypatch: pytest.MonkeyPatch) -> None:
    fifth: Any = "fifth"
    monkeypatch.setitem(modes.MODES, fifth, replace(modes.MODES[twin], name=fifth))
    recorded = [directory for directory in sorted(DATA.iterdir()) if directory.is_dir()]
    assert recorded
    for directory in recorded:
        files = read_directory(directory)
        found, expected = plan(files, fifth), plan(files, twin)
        assert (found.steps, found.begins_anew) == (expected.steps, expected.begins_anew), directory
        assert found.reasons == tuple(reason.replace(f"{twin} mode", "fifth mode") for reason in expected.reasons)


def test_what_was_planned_after_a_state_s_batch_may_be_planned_again() -> None:
    planned = replace(contents_of(checkpoint({0: 1, 1: 2, 2: 3}, [0, 1])), stateful=True)
    first = replace(contents_of(checkpoint({0: 1}, [])), stateful=True)
    assert plan_repair(planned, "real-time", NOW_MS).steps == (Remove("offsets/2"),)
    assert plan_repair(first, "real-time", NOW_MS).steps == (Remove("offsets/0"),)
