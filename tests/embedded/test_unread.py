"""Records that go before they are read: the input topic is created again under its name, or retention takes them.

A recreated topic is known by its id, however many records it has; what is lost is counted, told and audited.
"""

from __future__ import annotations

from typing import Any

import pytest
import requests
from kafka.structs import TopicPartition

from exhaustive import exhaustive
from faults import events, java_of, metrics, suspend
from fraud_filter.audit.run import audit
from lab.harness.processes import Child, free_ports
from running import Stage, call, payment, refusal, until, wait_until

#: Micro-batch mode reads as async-progress mode does, and commits more often.
MODES = exhaustive(("async-progress", "continuous", "real-time"), but=["continuous"])
LOST = "fraud_filter_lost_records_total"
QUICK = {"restart_backoff_s": "0.2", "continuous_interval": "1 second", "real_time_duration": "5 seconds"}


def send(stage: Stage, name: str, count: int) -> set[str]:
    """Payments that are to be flagged, on all partitions; returns their ids."""
    ids = {f"{name}-{number}" for number in range(count)}
    stage.send((each, payment(each, 6000)) for each in ids)
    return ids


def recreate(stage: Stage, admin: Any) -> None:
    """The topic with the same name and partitions; it is empty."""
    admin.delete_topics([stage.input])
    until(lambda: stage.input not in admin.list_topics(), "the topic is gone")

    def created() -> bool:
        """The broker may still be busy with the former one's end."""
        configs = {"message.timestamp.type": "LogAppendTime"}
        wanted = {stage.input: {"num_partitions": 2, "replication_factor": 1, "configs": configs}}
        answers = admin.create_topics(wanted, raise_errors=False)["topics"]
        return bool(answers[0]["error_code"] == 0)

    until(created, "the topic is created again")
    admin.wait_for_topics([stage.input])


def by_partition(program: Child, port: int, name: str) -> float:
    """A metric of all partitions together; 0 before it is served."""
    program.raise_if_dead()
    try:
        found = metrics(port, "partition")
    except requests.ConnectionError:
        return 0
    return sum(value for each, value in found.items() if each.startswith(f"fraud_filter_{name}/"))


def committed(program: Child, port: int, count: int) -> bool:
    """Whether the offsets of both partitions together are committed up to `count`."""
    return by_partition(program, port, "committed_offset") == count


@pytest.mark.parametrize("mode", MODES)
def test_a_topic_that_was_recreated_is_read_from_its_first_record_and_what_retention_takes_then_is_counted_once(
    stage: Stage, admin: Any, mode: str
) -> None:
    (port,) = free_ports(1)
    quick = {"mode": mode, "metrics_port": str(port), **QUICK}
    send(stage, "old", 20)
    with stage.run(**quick) as program:
        wait_until(lambda: committed(program, port, 20), "all is committed", program)
        assert program.stop(30) == 0, program.tail()
    recreate(stage, admin)
    new = send(stage, "new", 60)  # more than were committed: offsets alone look right
    if mode == "continuous":
        with stage.run(**quick) as program:
            message = refusal(program, 3)
        assert f"the topic {stage.input!r} was recreated" in message
        assert "fail_on_data_loss" in message
    with stage.run(fail_on_data_loss="false", **quick) as program:
        wait_until(lambda: new <= stage.flagged_ids(), "all of the new topic is decided", program)
        wait_until(lambda: committed(program, port, 60), "all of it is committed", program)
        assert metrics(port)[LOST] == 0  # all of the former one was decided
        result = audit(stage.settings())
        assert (result.ok, result.expected) == (True, 60), result.examples
        assert result.former >= 20
        lost = require_a_loss_while_java_hangs_is_told(stage, admin, program, port)
        last = send(stage, "last", 20)
        wait_until(lambda: last <= stage.flagged_ids(), "the rest is decided", program)
        wait_until(lambda: committed(program, port, 60 + 40 + 20), "the rest is committed", program)
        java_of(program).kill()
        wait_until(lambda: metrics(port)["fraud_filter_restarts_total/java-gone"] == 1, "a restart", program)
        wait_until(lambda: metrics(port)["fraud_filter_up"] == 1, "the query runs again", program)
        assert metrics(port)[LOST] == 40
        assert len(events(program, "topic_recreated")) == 1
        assert program.stop(30) == 0, program.tail()
    assert not any(each.startswith("unread") for each in stage.flagged_ids())
    told = call_audit(stage)
    for number, offsets in lost.items():
        assert f"partition {number} offsets {offsets[0]} to {offsets[-1]}" in told
    # Also what goes after the last commit, while no filter runs.
    later = [at for part, at in stage.send((f"c{n}", payment(f"later-{n}", 6000)) for n in range(20)) if part == 0]
    admin.delete_records({TopicPartition(stage.input, 0): later[-1] + 1})
    assert f"partition 0 offsets {later[0]} to {later[-1]}" in call_audit(stage)


def require_a_loss_while_java_hangs_is_told(
    stage: Stage, admin: Any, program: Child, port: int
) -> dict[int, list[int]]:
    """Forty records go before they are read; returns their offsets by partition. Java goes on then."""
    suspend(java_of(program))
    places = stage.send((f"c{n}", payment(f"unread-{n}", 6000)) for n in range(40))
    lost = {number: [at for part, at in places if part == number] for number in (0, 1)}
    admin.delete_records({TopicPartition(stage.input, number): offsets[-1] + 1 for number, offsets in lost.items()})
    wait_until(lambda: metrics(port)[LOST] == len(places), "the loss is counted while the query hangs", program)
    told = "\n".join(events(program, "data_lost"))
    for number, offsets in lost.items():
        assert f"partition {number} offsets {offsets[0]} to {offsets[-1]}" in told
    java_of(program).resume()
    return lost


def call_audit(stage: Stage) -> str:
    """What the verb says of the losses, for which it ends with 1."""
    done = call("audit", "--settle", "0", timeout_s=120, **stage.environment())
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.exhaustive  # it is recreated above, while no query runs
def test_a_topic_that_is_recreated_under_a_running_query_counts_what_was_unread_once(stage: Stage, admin: Any) -> None:
    (port,) = free_ports(1)
    send(stage, "old", 20)
    with stage.run(mode="continuous", metrics_port=str(port), fail_on_data_loss="false", **QUICK) as program:
        wait_until(lambda: committed(program, port, 20), "all is committed", program)
        suspend(java_of(program))
        unread = send(stage, "unread", 7)
        wait_until(
            lambda: by_partition(program, port, "consumer_lag_records") == len(unread),
            "the filter has seen what is unread",
            program,
        )
        recreate(stage, admin)
        new = send(stage, "new", 60)
        wait_until(lambda: new <= stage.flagged_ids(), "all of the new topic is decided", program)
        wait_until(lambda: committed(program, port, 60), "all of it is committed", program)
        assert metrics(port)["fraud_filter_restarts_total/topic-recreated"] == 1
        java_of(program).kill()
        later = send(stage, "later", 4)
        wait_until(lambda: later <= stage.flagged_ids(), "decisions after one more restart", program)
        assert metrics(port)[LOST] == len(unread)
        assert stage.flagged_ids().isdisjoint(unread)
        assert len(events(program, "topic_recreated")) == 1
        assert program.stop(30) == 0, program.tail()
