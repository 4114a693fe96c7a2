"""A state of features that is gone, broken or of other features is made again from the input topic, exactly."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import NewPartitions
from kafka.structs import TopicPartition

from faults import events
from fraud_filter.errors import EXIT_USAGE
from lab.harness.processes import Child
from running import Stage, refusal, wait_until
from velocity_run import HELD, RULES, Run, right


@pytest.fixture
def run(stage: Stage) -> Run:
    return Run(stage)


def _decide_more(run: Run, why: str, **changes: str) -> Child:
    """Payments that follow on the last decided ones within their windows, decided after a start that says `why`."""
    run.pay(3)
    program = run.start(real_time_duration="5 seconds", **changes)
    try:
        run.pay(3)
        run.await_all(program)
        _await_commit(run, program)
        (told,) = events(program, "rebuilding_state")
        assert f'reason="{why}' in told or f"reason={why}" in told, told
        assert int(told.split("payments=")[1].split()[0]) > 0, told
        os.kill(program.pid or 0, signal.SIGKILL)
    finally:
        program.stop()
    result = run.audit(by_checkpoint=True)
    right(result)
    assert result.duplicated == 0, result
    return program


def _await_commit(run: Run, program: Child) -> None:
    def commits() -> float:
        return run.page.values("fraud_filter_commits_total").get("", 0)

    before = commits()
    wait_until(lambda: commits() > before, "a commit", program)
    run.pay(2)  # in a batch that is not committed
    run.await_all(program)


def _decide_first(run: Run) -> Path:
    """Payments that are decided and committed; the directory of their state."""
    program = run.start(real_time_duration="5 seconds")
    try:
        run.pay(8)
        run.await_all(program)
        _await_commit(run, program)
    finally:
        program.stop()
    return run.stage.directory / "checkpoint" / "state"


OTHER_FEATURES = RULES.replace("over: 6 seconds, value: sum(amount)", "over: 5 seconds, value: sum(amount)")
OTHER_STATE = {"velocity_payments": str(HELD + 1), "velocity_partitions": "1"}


@pytest.mark.timeout(900)
def test_a_state_that_is_lost_or_of_other_features_is_made_again(run: Run, admin: Any) -> None:
    shutil.rmtree(_decide_first(run))
    _decide_more(run, "the state is gone")
    run.set_rules(OTHER_FEATURES)
    _decide_more(run, "features changed: spent_6s", **OTHER_STATE)
    run.set_rules(RULES)
    admin.delete_records({TopicPartition(run.stage.input, n): at - 1 for n, at in run.stage.committed().items()})
    told = refusal(run.start(**OTHER_STATE), EXIT_USAGE)
    assert "It follows from payments since 20" in told, told
    assert "has none before offset" in told, told
    assert "FRAUD_FAIL_ON_DATA_LOSS" in told, told


@pytest.mark.exhaustive  # other ways to the same start
@pytest.mark.timeout(1200)
def test_a_state_that_is_broken_or_of_another_shape_is_made_again(run: Run) -> None:
    state = _decide_first(run)
    for file in state.rglob("*_*.changelog"):
        file.write_bytes(b"broken")
    _decide_more(run, "the state can't be read")
    _decide_more(run, "velocity_partitions is 1 and was 2, velocity_payments is 9 and was 8", **OTHER_STATE)
    for file in state.rglob("*"):
        if file.is_file():
            file.write_bytes(b"broken")
    _decide_more(run, "the state can't be read", **OTHER_STATE)
    run.set_rules(RULES.replace("per: merchant", "per: country"))
    _decide_more(run, "features changed: countries_2s, flow, idle", **OTHER_STATE)


@pytest.mark.exhaustive  # as above
@pytest.mark.timeout(900)
def test_a_watermark_that_is_ahead_rejects_nothing(run: Run) -> None:
    """As after a clock that was a day ahead."""
    logs = _decide_first(run).parent
    ahead = str(round((time.time() + 86400) * 1000))
    for file in [*logs.glob("commits/[0-9]*"), *logs.glob("offsets/[0-9]*")]:
        file.write_text(re.sub(r'(?<=WatermarkMs":)\d+', ahead, file.read_text()))
        (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
    _decide_more(run, "the state's watermark is ahead")
    assert "late" not in run.audit(by_checkpoint=True).reject_reasons


@pytest.mark.exhaustive  # partitions without features are in test_supervisor_run
@pytest.mark.timeout(600)
def test_added_partitions_are_read_with_the_state_that_is_there(run: Run, admin: Any) -> None:
    """Keys move to other partitions, and their windows with them."""
    own = {"velocity_partitions": "1", "real_time_duration": "5 seconds"}
    program = run.start(**own)
    try:
        run.pay(5)
        run.await_all(program)
        _await_commit(run, program)
        admin.create_partitions({run.stage.input: NewPartitions(total_count=3)})
        wait_until(lambda: len(events(program, "started")) == 2, "they are read", program)
        run.pay(5)
        run.await_all(program)
    finally:
        program.stop()
    assert right(run.audit(by_checkpoint=True)).untold > 0, "no key moved"
