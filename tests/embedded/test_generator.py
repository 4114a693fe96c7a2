"""The generator against the real broker: pace, delivery, headers, partitions, and ends of every kind."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fraud_filter.config import Settings, load
from fraud_filter.generator.payments import MadePayments, Shares
from fraud_filter.generator.replay import Replay
from fraud_filter.generator.sender import HEADER_GENERATED_AT, Sender
from fraud_filter.generator.source import Pace, Steady
from fraud_filter.home import HOME
from fraud_filter.schema import load_schema
from lab.harness.broker import Broker
from running import PROGRAM, call, read_topics

TopicMaker = Callable[..., str]

DATA = Path(__file__).parents[1] / "data"


def _settings(broker: Broker, topic: str, **more: Any) -> Settings:
    return load({"kafka_bootstrap_servers": broker.address, "input_topic": topic, **more})


def _made(settings: Settings, pace: Pace, seed: int = 1, shares: Shares | None = None) -> MadePayments:
    return MadePayments.for_settings(settings, pace, seed=seed, shares=shares)


def _read(broker: Broker, topic: str) -> list[Any]:
    """All records of the topic."""
    return read_topics(broker.address, topic)[topic]


def _header(record: Any) -> int:
    return int(dict(record.headers)[HEADER_GENERATED_AT])


def test_everything_arrives_as_reported(broker: Broker, topics: TopicMaker) -> None:
    settings = _settings(broker, topics("payments"))
    source = _made(settings, Steady(2000), shares=Shares(flagged=0.1, malformed=0.05))
    report = Sender(settings, source, count=3000).run()
    records = _read(broker, settings.input_topic)
    assert (report.sent, report.delivered, report.failed, len(records)) == (3000, 3000, 0, 3000)
    assert report.intended_rate == pytest.approx(2000)
    assert report.kept_rate is not None
    # The last one was due 1.4995 s after the first: it was sent no earlier, and no later than the latest of all.
    assert 3000 / (1.4995 + report.lateness_ms.max / 1000) <= report.kept_rate * 1.001
    assert report.kept_rate <= 3000 / 1.4995 * 1.001
    batches = source.batches(0)
    made = [next(batches) for _ in range(15)]
    assert report.flagged == sum(int(batch.flagged.sum()) for batch in made if batch.flagged is not None)
    assert report.malformed == sum(int(batch.malformed.sum()) for batch in made)
    assert Counter(record.key for record in records) == Counter(key for batch in made for key in batch.keys)


def test_headers_tell_when_each_one_was_due(broker: Broker, topics: TopicMaker) -> None:
    settings = _settings(broker, topics("payments", partitions=1))
    Sender(settings, _made(settings, Steady(100)), count=50).run()
    records = _read(broker, settings.input_topic)
    due_us = [_header(record) for record in records]
    assert {second - first for first, second in itertools.pairwise(due_us)} <= {9999, 10000, 10001}
    # Both clocks are this machine's; the broker's counts whole milliseconds. A wrong unit or clock is far off.
    appended_ms = [record.timestamp for record in records]
    assert all(at_ms >= due // 1000 for at_ms, due in zip(appended_ms, due_us, strict=True))
    assert sorted(at_ms - due // 1000 for at_ms, due in zip(appended_ms, due_us, strict=True))[25] < 5000
    payments = [json.loads(record.value or b"{}") for record in records]
    assert len({payment["created_at"] for payment in payments}) > 40


@contextmanager
def _paused(broker: Broker) -> Iterator[Callable[[], None]]:
    """The broker's process is stopped; the function that is given lets it go on."""
    pid = broker.child.pid
    assert pid is not None

    def go_on() -> None:
        os.kill(pid, signal.SIGCONT)

    os.kill(pid, signal.SIGSTOP)
    try:
        yield go_on
    finally:
        go_on()


@pytest.mark.timed
def test_a_broker_that_hangs_does_not_slow_the_schedule(broker: Broker, topics: TopicMaker) -> None:
    settings = _settings(broker, topics("payments"))
    sender = Sender(settings, _made(settings, Steady(500)), seconds=3)
    with _paused(broker) as go_on:
        threading.Timer(2, go_on).start()
        report = sender.run()
    assert (report.sent, report.delivered) == (1500, 1500)
    assert report.kept_rate == pytest.approx(500, rel=0.05)
    assert report.lateness_ms.p50 < 20  # two of three seconds passed without an answer
    assert len(_read(broker, settings.input_topic)) == 1500


def test_what_a_broker_never_confirms_counts_as_failed(broker: Broker, topics: TopicMaker) -> None:
    settings = _settings(broker, topics("payments"), kafka_timeout_s=1)
    sender = Sender(settings, _made(settings, Steady(500)), count=100)
    with _paused(broker):
        report = sender.run()
    assert (report.sent, report.delivered, report.failed) == (100, 0, 100)
    assert report.error == "not confirmed within 1 s"
    assert report.duration_s < 60


def test_replay_keeps_the_recorded_pace(broker: Broker, topics: TopicMaker) -> None:
    settings = _settings(broker, topics("payments", partitions=1))
    source = Replay(DATA / "sparkov.csv", load_schema(HOME / "app/payment.ddl"), select="sparkov", speed=200)
    report = Sender(settings, source).run()
    assert (report.sent, report.delivered, report.flagged, report.seed) == (20, 20, None, None)
    records = _read(broker, settings.input_topic)
    assert [json.loads(record.value)["card_id"].encode() for record in records] == [record.key for record in records]
    # The first two are 27 s apart.
    assert _header(records[1]) - _header(records[0]) == pytest.approx(27e6 / 200, abs=1)


def test_records_that_the_broker_refuses_are_counted(broker: Broker, topics: TopicMaker) -> None:
    topic = topics("payments", max_message_bytes="150")
    words = ["--kafka-bootstrap-servers", broker.address, "--input-topic", topic, "--malformed-share", "0"]
    ran = call("generate", *words, "--count", "20", "--rate", "1000")
    assert ran.returncode == 1, ran.stderr
    assert "20 sent" in ran.stdout
    assert "0 delivered, 20 failed" in ran.stdout
    assert ran.stdout.splitlines()[-1] == "first error   Broker: Message size too large"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_program_with_its_report(number: signal.Signals, broker: Broker, topics: TopicMaker) -> None:
    topic = topics("payments")
    words = ["--kafka-bootstrap-servers", broker.address, "--input-topic", topic, "--json"]
    with subprocess.Popen(
        [*PROGRAM, "generate", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        assert program.stderr is not None
        assert program.stderr.readline().startswith("writing to")
        program.send_signal(number)
        out, _ = program.communicate(timeout=30)
    assert program.returncode == 0
    written = json.loads(out)
    assert written["delivered"] == written["sent"] == len(_read(broker, topic))
