"""Every mode runs on the cluster, one after the other on one checkpoint, and nothing is lost on the way."""

from __future__ import annotations

import pytest

from audits import audited, committed_past_the_end
from deployed import Deployed
from exhaustive import exhaustive
from fraud_filter.compose import env_file
from waiting import wait_until

# Into every mode, and out of continuous mode, whose checkpoint the others can't start from before it is repaired.
MODES = ("async-progress", "real-time", "continuous", "micro-batch")
DECIDED = "fraud_filter_flagged_records_total"


def _executor_tasks(stack: Deployed) -> int:
    """Tasks that ran or run on executors of the master's workers, by the driver's own account."""
    workers = {worker["host"] for worker in stack.json("SPARK_MASTER_UI_PORT", "/json/")["workers"]}
    application = stack.json("SPARK_UI_PORT", "/api/v1/applications")[0]["id"]
    executors = stack.json("SPARK_UI_PORT", f"/api/v1/applications/{application}/executors")
    return sum(
        executor["totalTasks"] + executor["activeTasks"]
        for executor in executors
        if executor["id"] != "driver" and executor["hostPort"].split(":")[0] in workers
    )


def _runs_on_the_cluster(stack: Deployed, mode: str) -> None:
    assert wait_until(f"tasks on a worker in {mode} mode", lambda: _executor_tasks(stack) > 0)
    assert wait_until(
        f"flagged payments in {mode} mode", lambda: sum(stack.metric(DECIDED, "FRAUD_PROBE_PORT").values())
    )
    filters = [state for state in stack.open().states() if state.service == "fraud-filter"]
    assert [f"FRAUD_MODE={mode}" in state.container.attrs["Config"]["Env"] for state in filters] == [True]


def test_the_first_mode_runs_on_the_cluster(stack: Deployed) -> None:
    _runs_on_the_cluster(stack, "micro-batch")


@pytest.mark.parametrize("mode", exhaustive(MODES, but=["real-time", "micro-batch"]))
def test_switch_moves_to_a_mode_that_runs_on_the_cluster(stack: Deployed, mode: str) -> None:
    old = env_file.read(stack.env)["FRAUD_MODE"]
    if mode == "real-time":  # as one that was killed at its worst leaves it: no old filter, and no new one
        (container,) = [state.container for state in stack.open().states() if state.service == "fraud-filter"]
        container.remove(force=True)
    switched = stack.call("rollout", "--mode", mode)
    assert switched.returncode == 0, switched.stdout
    assert f"from {old} to {mode} mode in " in switched.stdout
    _runs_on_the_cluster(stack, mode)


def test_nothing_was_lost_on_the_way(stack: Deployed) -> None:
    committed = committed_past_the_end(stack)
    assert audited(stack, committed)["payments"] == sum(committed.values()) > 0


def test_the_mode_it_is_in_already_is_no_switch(stack: Deployed) -> None:
    same = stack.call("rollout", "--mode", "micro-batch")
    assert (same.returncode, same.stdout) == (0, "micro-batch mode runs already\n")
