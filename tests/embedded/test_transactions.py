"""Payments of transactional producers: what is committed is decided, what is aborted or still open is not.

And where a query begins is decided once: a restart before the first commit goes on from there.
"""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Producer

from exhaustive import exhaustive
from faults import events, java_of, metrics
from fraud_filter.audit.run import audit
from fraud_filter.metrics.server import get_page
from fraud_filter.monitor.monitor import Monitor
from lab.harness.processes import free_ports
from running import START_S, Stage, payment, until, wait_until

#: Micro-batch mode reads as async-progress mode does, and commits more often.
MODES = exhaustive(("async-progress", "continuous", "real-time"), but=["async-progress"])
#: Payments of each transaction on each partition; all of them are to be flagged.
COUNT = 5


class Ledgers:
    """A transactional producer that writes `COUNT` payments to both partitions in each transaction."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._topic = stage.input
        self._producer: Any = Producer(
            {
                "bootstrap.servers": stage.address,
                "transactional.id": f"{name}-{stage.input}",
                "transaction.timeout.ms": 600_000,  # the broker would abort it in the midst of a slow test
                "linger.ms": 0,
            }
        )
        self._producer.init_transactions(30)

    def begin(self, name: str) -> None:
        """Opens a transaction; its payments are on the topic when this returns."""
        self._producer.begin_transaction()
        for partition in (0, 1):
            for number in range(COUNT):
                value = payment(f"{name}-{partition}-{number}", 6000)
                self._producer.produce(self._topic, value, key=b"card", partition=partition)
        assert self._producer.flush(30) == 0

    def commit(self) -> None:
        self._producer.commit_transaction(30)

    def abort(self) -> None:
        self._producer.abort_transaction(30)


def decided(stage: Stage) -> set[str]:
    """Names of the transactions of which payments were flagged."""
    return {each.partition("-")[0] for each in stage.flagged_ids()}


def lag(port: int) -> float | None:
    """Of all partitions together; None before it is known."""
    known = metrics(port, "partition").items()
    found = [value for name, value in known if name.startswith("fraud_filter_consumer_lag_records/")]
    return sum(found) if len(found) == 2 else None


@pytest.mark.parametrize("mode", MODES)
def test_latest_is_resolved_once_and_what_is_committed_is_decided_over_kills(stage: Stage, mode: str) -> None:
    """A kill before the first commit of all, and one while a transaction is open."""
    (port,) = free_ports(1)
    begin = {part: at + 1 for part, at in stage.send((f"c{n}", payment(f"before-{n}", 6000)) for n in range(20))}
    assert len(begin) == 2
    # Real-time mode would rewind, where it may go on without what it takes for lost.
    fatal = str(mode != "real-time").lower()
    start = {"mode": mode, "starting_offsets": "latest", "metrics_port": str(port), "fail_on_data_loss": fatal}
    with stage.run(**start, restart_backoff_s="0.2", real_time_duration="5 seconds") as program:
        until(lambda: len(events(program, "started")) == 1, "the query runs", START_S)
        java = java_of(program)
        java.suspend()  # Spark still plans
        assert not list(stage.directory.glob("checkpoint/commits/[0-9]*")), "the test came too late"
        short, long = write_three(stage)
        java.kill()
        wait_until(lambda: len(events(program, "started")) == 2, "the query runs again", program)
        wait_until(lambda: "first" in decided(stage), "the committed transaction is decided", program)
        wait_until(lambda: lag(port) == 0, "what is aborted or open is no lag", program)
        java_of(program).kill()
        wait_until(lambda: len(events(program, "started")) == 3, "the query runs once more", program)
        assert decided(stage) == {"first"}
        short.begin("second")
        short.commit()
        long.commit()
        wait_until(lambda: len(stage.flagged_ids()) == 3 * 2 * COUNT, "the others are decided", program)
        assert decided(stage) == {"first", "open", "second"}
        wait_until(lambda: lag(port) == 0, "the marks of transactions are no lag", program)
        assert metrics(port)["fraud_filter_lost_records_total"] == 0
        assert metrics(port)["fraud_filter_restarts_total/java-gone"] == 2, events(program, "restarting")
        assert not events(program, "data_lost")
        assert program.stop(30) == 0, program.tail()
    result = audit(stage.settings(), start=begin)
    assert (result.expected, result.lost, result.unexpected) == (3 * 2 * COUNT, 0, 0), result


def test_what_an_open_transaction_holds_is_told_though_there_is_no_lag(stage: Stage) -> None:
    """The end for a reader of committed records rests before the transaction, whatever is appended behind it."""
    settings = stage.settings().model_copy(update={"metrics_port": 0, "stall_timeout_s": 2})
    producer = Ledgers(stage, "long")
    with closing(Monitor(settings, ())) as monitor:

        def told(name: str) -> dict[str, float]:
            known = metrics(monitor.port, "partition").items()
            return {key.partition("/")[2]: value for key, value in known if key.startswith(f"fraud_filter_{name}/")}

        def is_held_up() -> bool:
            return "an open transaction holds partitions 0, 1" in get_page("127.0.0.1", monitor.port, "/readyz", 30)[1]

        monitor.set_state("running")
        until(lambda: told("held_records") == {"0": 0, "1": 0}, "nothing is held")
        began = time.time()
        producer.begin("open")
        stage.send((f"c{number}", payment(f"behind-{number}", 6000)) for number in range(20))
        until(lambda: sum(told("held_records").values()) == 2 * COUNT + 20, "all is held")
        assert told("latest_offset") == {"0": 0, "1": 0}
        assert all(began <= since <= time.time() for since in told("held_since_timestamp_seconds").values())
        until(is_held_up, "the filter is not ready")
        producer.commit()
        until(lambda: told("held_records") == {"0": 0, "1": 0}, "nothing is held any more")
        until(lambda: told("held_since_timestamp_seconds") == {}, "no time is told any more")
        until(lambda: not is_held_up(), "the filter is ready")


def write_three(stage: Stage) -> tuple[Ledgers, Ledgers]:
    """A transaction that is committed, one that is aborted, and one that stays open, of the second producer."""
    short, long = Ledgers(stage, "short"), Ledgers(stage, "long")
    short.begin("first")
    short.commit()
    short.begin("aborted")
    short.abort()
    long.begin("open")
    return short, long


def test_what_was_read_before_its_transaction_ended_is_waited_for_and_no_loss(stage: Stage) -> None:
    """The checkpoint of a filter that read uncommitted records, as all did before the setting."""
    (port,) = free_ports(1)
    quick = {"metrics_port": str(port), "restart_backoff_s": "0.2"}
    producer = Ledgers(stage, "long")
    producer.begin("open")
    with stage.run(mode="micro-batch", kafka_isolation_level="read_uncommitted", **quick) as program:
        wait_until(lambda: "open" in decided(stage), "the open transaction is decided", program)
        wait_until(lambda: lag(port) == 0, "it is committed", program)
        assert program.stop(30) == 0, program.tail()
    with stage.run(mode="micro-batch", **quick) as program:
        wait_until(lambda: len(events(program, "restarting")) >= 1, "the start waits", program)
        assert "reason=transaction-open" in events(program, "restarting")[0]
        producer.commit()
        producer.begin("next")
        producer.commit()
        wait_until(lambda: "next" in decided(stage), "what comes after it is decided", program)
        assert program.stop(30) == 0, program.tail()
