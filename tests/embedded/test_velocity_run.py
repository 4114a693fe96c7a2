"""Velocity features on a real broker and a real Spark: each payment decided once, by windows that slide exactly."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka.producer.kafka import KafkaProducer

from faults import events
from fraud_filter.records import read_source
from lab.harness.processes import Child
from metrics_page import Page
from running import GOOD, Stage, wait_until
from velocity_run import HELD, SHOPS, Run, right

FEATURES = (
    "payments_6s",
    "spent_6s",
    "mean_2s",
    "least_6s",
    "most_2s",
    "countries_2s",
    "idle",
    "known",
    "pace",
    "flow",
)
#: The same windows by the payments' own time, which is up to a minute late or wrong.
BY_OWN_TIME = """\
features:
  - {name: payments_1s, per: merchant, over: 1 second, by: created_at, late: 1 minute, value: count}
  - {name: spent_1s, per: merchant, over: 1 second, by: created_at, late: 1 minute, value: sum(amount)}
  - {name: idle, per: merchant, over: 1 second, by: created_at, late: 1 minute, value: seconds_since_last}
rules:
  - {name: each, when: amount > 0}
  - {name: burst, when: payments_1s > 2 AND idle < 1}
"""


@pytest.fixture
def run(stage: Stage) -> Run:
    return Run(stage)


def _check_flags(records: list[Any]) -> None:
    """A full window is flagged, and no other."""
    full = 0
    for record in records:
        payment, headers = json.loads(record.value), dict(record.headers)
        named = headers.get("features.truncated", b"").decode().split(",")
        is_full = payment.get("payments_6s") == HELD
        # Of a key on both partitions a payment may come when the state has only later ones: an empty window says so.
        assert ("payments_6s" in named) == is_full or payment.get("merchant") not in SHOPS
        full += "payments_6s" in named
        if payment.get("merchant") is None:
            assert not payment.keys() & set(FEATURES)
    assert 0 < full < len(records)


@pytest.mark.timeout(1200)
def test_each_payment_is_decided_once_by_its_own_window_also_after_a_kill(run: Run) -> None:
    program = run.start()
    try:
        run.pay(20)
        run.await_all(program)
        first = run.audit()
        assert first.ok, first
        assert (first.lost, first.unexpected, first.duplicated) == (0, 0, 0)
        assert first.features
        assert first.features.differing == 0
        assert first.features.decisions > first.payments / 2
        assert 0 < first.features.untold < first.payments / 4
        assert first.features.truncated > 0
        assert first.rejected == first.rejected_expected > 0
        _check_flags(run.stage.written()[run.stage.flagged])
        _check_state(run.page, program)
        run.pay_uncommitted(program)
        os.kill(program.pid or 0, signal.SIGKILL)
    finally:
        program.stop()
    run.pay(3)
    program = run.start(velocity_lag="2 hours")
    try:
        run.pay(10)
        run.await_all(program)
    finally:
        program.stop()
    second = run.audit()
    right(second)
    assert second.duplicated == 0
    *_, read = events(program, "outputs_read")
    assert int(read.split("decisions=")[1].split()[0]) > 0, "nothing was replayed"
    sources = (read_source(record.headers) for record in run.stage.written()[run.stage.flagged])
    assert len({source.writer for source in sources if source}) == 2, "each start is a writer of its own"


HELD_BACK = """\
features:
  - {name: payments_1m, per: merchant, over: 1 minute, value: count}
  - {name: pace, per: merchant, decay: 10 seconds, value: count}
rules:
  - {name: each, when: amount > 0}
"""


@pytest.mark.exhaustive  # late payments are below, open transactions in test_transactions
@pytest.mark.timeout(600)
def test_what_a_transaction_held_back_for_longer_than_the_lag_is_late_and_not_dropped(run: Run) -> None:
    """Spark would drop it by the watermark, which the other partition has moved on, and tell nobody."""
    run.set_rules(HELD_BACK)
    producer = Producer({"bootstrap.servers": run.stage.address, "transactional.id": f"held-{run.stage.input}"})
    producer.init_transactions(30)

    def send(name: str, partition: int) -> None:
        value = json.dumps({**GOOD, "payment_id": name, "merchant": f"shop {partition}", "amount": 7}).encode()
        producer.produce(run.stage.input, value, key=b"shop", partition=partition)
        assert producer.flush(30) == 0

    program = run.start(real_time_duration="5 seconds", velocity_lag="5 seconds")
    sender = KafkaProducer(bootstrap_servers=run.stage.address, acks="all")
    try:
        wait_until(lambda: run.page.values("fraud_filter_up").get("", 0) == 1, "the query runs", program, 180)
        producer.begin_transaction()
        for number in range(5):
            send(f"held-{number}", 1)
        commits, number = run.page.values("fraud_filter_commits_total")[""], 0
        while run.page.values("fraud_filter_commits_total")[""] < commits + 4:
            value = json.dumps({**GOOD, "payment_id": f"p{number}", "merchant": "shop 0", "amount": 7}).encode()
            sender.send(run.stage.input, value, key=b"shop", partition=0)
            number += 1
            time.sleep(0.2)
        producer.commit_transaction(30)
        wait_until(lambda: len(run.decided) == number + 5, "all are decided", program, 60)
        producer.begin_transaction()
        send("behind", 1)
        producer.commit_transaction(30)
        wait_until(lambda: len(run.decided) == number + 6, "that behind them is decided", program, 60)
        assert run.page.values("fraud_filter_late_records_total") == {"": 0}
    finally:
        program.stop()
    result = run.audit()
    right(result)
    assert result.reject_reasons == {"late": 5}
    rejected = [json.loads(record.value)["payment_id"] for record in run.stage.written()[run.stage.rejected]]
    assert rejected == [f"held-{number}" for number in range(5)]
    counts = {
        payment["payment_id"]: payment["payments_1m"]
        for record in run.stage.written()[run.stage.flagged]
        for payment in (json.loads(record.value),)
    }
    assert counts["behind"] == 6, "what was late counts for what comes after it"


@pytest.mark.timeout(600)
def test_late_payments_count_at_their_own_time_and_none_is_dropped(run: Run) -> None:
    """Windows of a second: without `late` the watermark, 5 seconds back, would drop what is a minute late."""
    run.set_rules(BY_OWN_TIME)
    program = run.start(real_time_duration="5 seconds", velocity_lag="5 seconds")
    try:
        # With a backlog the filter would begin with a longer lag.
        wait_until(lambda: run.page.values("fraud_filter_up").get("", 0) == 1, "the query runs", program, 180)
        # Five, because Spark drops by the watermark of two batches before.
        while run.page.values("fraud_filter_commits_total")[""] < 5:
            run.pay(3)
            assert run.page.values("fraud_filter_late_records_total") == {"": 0}
        run.await_all(program)
    finally:
        program.stop()
    result = run.audit()
    assert right(result).decisions > result.payments / 2
    counts = {json.loads(record.value).get("payments_1s") for record in run.stage.written()[run.stage.flagged]}
    assert counts >= {1, 2, 3}


def _check_state(page: Page, program: Child) -> None:
    """At a batch end Spark tells how large the state is, and that no payment was dropped."""

    def told(what: str) -> float:
        return page.values(f"fraud_filter_velocity_{what}").get("", 0)

    wait_until(lambda: told("keys") >= len(SHOPS), "the state is told", program, 60)
    assert told("memory_bytes") > 0
    assert told("disk_bytes") > 0, "the commit left no snapshot"
    assert told("commit_seconds") > 0
    assert page.values("fraud_filter_late_records_total") == {"": 0}
