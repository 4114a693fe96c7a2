"""Velocity features on a real broker and a real Spark: each payment decided once, by windows that slide exactly."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka.producer.kafka import KafkaProducer

from dying_repairs import open_as
from faults import events
from fraud_filter.audit.gaps import read_recorded
from fraud_filter.audit.result import AuditResult, FeatureCounts
from fraud_filter.audit.run import audit
from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.errors import EXIT_USAGE, UsageError
from fraud_filter.query.preflight import check_inputs
from fraud_filter.supervisor.start_position import match_state
from lab.harness.processes import Child, free_ports
from metrics_page import Page
from running import GOOD, Stage, wait_until

#: Most payments of a key in the state.
HELD = 8
RULES = """\
features:
  - {name: payments_6s, per: merchant, over: 6 seconds, value: count}
  - {name: spent_6s, per: merchant, over: 6 seconds, value: sum(amount)}
  - {name: mean_2s, per: merchant, over: 2 seconds, value: avg(amount)}
  - {name: least_6s, per: merchant, over: 6 seconds, value: min(amount)}
  - {name: most_2s, per: merchant, over: 2 seconds, value: max(amount)}
  - {name: countries_2s, per: merchant, over: 2 seconds, value: count_distinct(country)}
  - {name: idle, per: merchant, over: 6 seconds, value: seconds_since_last}
  - {name: known, per: merchant, over: 6 seconds, value: first_seen}
  - {name: pace, per: merchant, decay: 1 second, value: count}
  - {name: flow, per: merchant, decay: 2 seconds, value: sum(amount)}
rules:
  - {name: each, when: amount > 0}
  - {name: burst, when: payments_6s > 4 AND idle < 1}
  - {name: travel, when: countries_2s >= 2}
"""
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
LATE_S = (0, 0.4, 0.8, 2, 50, 90, -3600)
#: How often the shops sell, from all the time to about once in a window.
SHOPS = {"busy": 12, "usual": 5, "corner": 5, "quiet": 1}


class Run:
    """A filter with features, and the payments that it gets."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.page = Page(*free_ports(1))
        self.settings = {
            "mode": "real-time",
            "real_time_duration": "20 seconds",
            "velocity_payments": str(HELD),
            "metrics_port": str(self.page.port),
        }
        self.set_rules(RULES)
        self._draw = random.Random(7)
        self._sent = 0

    def set_rules(self, text: str) -> None:
        """Before the start."""
        file = self.stage.directory / "rules.yml"
        file.write_text(text)
        self.settings["rules"] = str(file)

    def start(self, **changes: str) -> Child:
        """The filter."""
        return self.stage.run(**(self.settings | changes)).start()

    def pay(self, seconds: float) -> None:
        """Payments of all kinds for so long, some of which are none."""
        producer = KafkaProducer(bootstrap_servers=self.stage.address, acks="all")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            key, value = self._payment()
            producer.send(self.stage.input, key=key.encode(), value=value)
            self._sent += 1
            time.sleep(self._draw.random() * 0.04)
        producer.close()

    def _payment(self) -> tuple[str, bytes]:
        draw = self._draw
        shop = draw.choices([*SHOPS, None, "on both partitions"], [*SHOPS.values(), 1, 1])[0]
        changes = {"payment_id": f"p{self._sent}", "merchant": shop, "country": draw.choice(["DE", "FR"])}
        changes["created_at"] = (datetime.now(UTC) - timedelta(seconds=draw.choice(LATE_S))).isoformat()
        value = json.dumps({**GOOD, **changes, "amount": round(draw.random() * 100, 2)}).encode()
        if draw.random() < 0.05:
            value = value[:-5]
        return (shop or "none") if shop in SHOPS else str(draw.random()), value

    @property
    def decided(self) -> set[tuple[int, int]]:
        """Partition and offset of the payments with a decision."""
        return {place for records in self.stage.written().values() for place in map(_place, records)}

    def await_all(self, program: Child) -> None:
        """Waits until each payment is decided: one of the rules matches every valid one."""
        wait_until(lambda: len(self.decided) == self._sent, "all payments are decided", program, 240)

    def audit(self, *, by_checkpoint: bool = False) -> AuditResult:
        """Audits all payments; with `by_checkpoint` by the rules and places that the checkpoint names."""
        location = str(self.stage.directory / "checkpoint")
        changes = {"rules": Path(self.settings["rules"]), "velocity_payments": HELD, "checkpoint": location}
        settings = self.stage.settings().model_copy(update=changes)
        return audit(settings, recorded=read_recorded(settings) if by_checkpoint else None)


def _place(record: Any) -> tuple[int, int]:
    headers = dict(record.headers)
    return int(headers["source.partition"]), int(headers["source.offset"])


def _right(result: AuditResult) -> FeatureCounts:
    """The counts of features of an audit that found nothing wrong."""
    assert result.ok, result
    assert result.features
    assert (result.lost, result.unexpected, result.features.differing) == (0, 0, 0)
    return result.features


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
def test_each_payment_is_decided_once_by_its_own_window_also_after_a_kill(run: Run, spark: Any) -> None:
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
        run.pay(1)
        run.await_all(program)  # in a batch that lasts longer than that
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
    _right(second)
    assert second.duplicated == 0
    *_, read = events(program, "outputs_read")
    assert int(read.split("decisions=")[1].split()[0]) > 0, "nothing was replayed"
    _refuses_other_features(run, spark)


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
    _right(result)
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
    assert _right(result).decisions > result.payments / 2
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


def _refuses_other_features(run: Run, spark: Any) -> None:
    """A state is of its features alone; whoever changes them is told what to do."""
    refused = run.start(velocity_payments="9")
    assert refused.wait(200) == EXIT_USAGE, "\n".join(refused.tail())
    told = "\n".join(refused.tail())
    assert "velocity_payments is 9 and was 8" in told
    assert "give a new location and starting_offsets" in told
    without = run.stage.directory / "without.yml"
    without.write_text("rules:\n  - {name: each, when: amount > 0}\n")
    location = str(run.stage.directory / "checkpoint")
    changes = {"mode": "real-time", "features_unsupported": "skip", "checkpoint": location, "rules": without}
    settings = run.stage.settings().model_copy(update=changes)
    with pytest.raises(UsageError, match=r"holds the state of features.* give a new location and starting_offsets"):
        match_state(open_as(CheckpointFiles, spark, location), check_inputs(settings), settings, only_check=True)
