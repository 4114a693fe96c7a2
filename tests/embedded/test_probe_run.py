"""The probe against the real broker: latencies from append times, copies, rejections, windows, and the program."""

from __future__ import annotations

import json
import math
import re
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import NewPartitions
from prometheus_client.parser import text_string_to_metric_families

from fraud_filter import probe as probe_module
from fraud_filter.embedded.broker import Broker
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.metrics import Registry
from fraud_filter.probe import Probe
from fraud_filter.tally import ProbeSnapshot
from outputs import Outputs, Placed
from running import Stage, payment

TopicMaker = Callable[..., str]

LABELS = {"mode": "micro-batch", "query": "fraud-filter"}


@pytest.fixture
def outputs(stage: Stage) -> Iterator[Outputs]:
    with Outputs(stage) as writer:
        yield writer


def _until(holds: Callable[[], bool], what: str, timeout_s: float = 20) -> None:
    end = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < end, f"not within {timeout_s} s: {what}"
        time.sleep(0.05)


def _seen(probe: Probe, records: int) -> ProbeSnapshot:
    """The figures once so many records of the window were read."""

    def count() -> int:
        figures = probe.snapshot()
        return figures.flagged + figures.rejected + figures.unreadable

    _until(lambda: count() >= records, f"{records} records, but {count()}")
    return probe.snapshot()


def _large(count: int) -> list[bytes]:
    return [payment(f"p{number}", 6000) for number in range(count)]


def _latencies(payments: Sequence[Placed], decided: Sequence[Placed]) -> list[int]:
    return [out.timestamp_ms - paid.timestamp_ms for paid, out in zip(payments, decided, strict=True)]


def test_latency_is_between_the_append_times_of_the_broker(outputs: Outputs) -> None:
    with Probe(outputs.stage.settings()) as probe:
        payments = outputs.pay(*_large(40))
        decided: list[Placed] = []
        for at in range(0, 40, 10):  # four groups that waited longer and longer
            time.sleep(0.15)
            decided += outputs.flag(payments[at : at + 10])
        figures = _seen(probe, 40)
        distribution = probe.distribution()
    expected = sorted(_latencies(payments, decided))
    assert expected[0] >= 150
    assert (figures.flagged, figures.rejected, figures.count, figures.negative) == (40, 0, 40, 0)
    measured = figures.p50_ms, figures.p90_ms, figures.p95_ms, figures.p99_ms, figures.p999_ms
    for share, latency_ms in zip((50, 90, 95, 99, 99.9), measured, strict=True):
        assert latency_ms == expected[math.ceil(40 * share / 100) - 1]
    assert figures.max_ms == expected[-1]
    assert distribution == Counter(expected)
    assert list(distribution) == sorted(distribution)


def test_when_it_is_read_does_not_count(outputs: Outputs) -> None:
    payments = outputs.pay(*_large(5))
    decided = outputs.flag(payments)
    time.sleep(1)
    with Probe(outputs.stage.settings(), from_beginning=True) as probe:
        figures = _seen(probe, 5)
    assert figures.max_ms == max(_latencies(payments, decided)) < 1000


def test_old_records_are_read_on_request_only(outputs: Outputs) -> None:
    first, second = outputs.pay(*_large(2))
    outputs.flag([first])
    with Probe(outputs.stage.settings()) as probe:
        assert probe.ready.is_set()
        outputs.flag([second])
        assert _seen(probe, 1).flagged == 1
        assert probe.snapshot().source_offsets == {0: 1}
    with Probe(outputs.stage.settings(), from_beginning=True) as probe:
        assert _seen(probe, 2).flagged == 2


def test_a_repeated_decision_is_a_duplicate_and_has_no_latency(outputs: Outputs) -> None:
    registry = Registry()
    with Probe(outputs.stage.settings(), registry) as probe:
        payments = outputs.pay(*_large(3))
        outputs.flag(payments)
        outputs.flag(payments[:2], partition=1)
        outputs.reject([payments[2]])
        figures = _seen(probe, 6)
    assert (figures.flagged, figures.rejected, figures.duplicates, figures.count) == (5, 1, 3, 3)
    assert registry.get_sample_value("fraud_filter_duplicate_records_total", LABELS) == 3
    assert registry.get_sample_value("fraud_filter_flagged_records_total", LABELS) == 5
    assert registry.get_sample_value("fraud_filter_end_to_end_latency_seconds_count", LABELS) == 3


def test_rejected_records_are_counted_by_reason(outputs: Outputs) -> None:
    registry = Registry()
    reasons = [
        "empty-record",
        "malformed-json",
        "missing-field: amount,country",
        "missing-field: amount",
        "wrong-type: amount",
        "spilled coffee",
    ]
    with Probe(outputs.stage.settings(), registry) as probe:
        payments = outputs.pay(*[b"bad"] * len(reasons))
        for placed, reason in zip(payments, reasons, strict=True):
            outputs.reject([placed], reason)
        figures = _seen(probe, len(reasons))
    assert (figures.flagged, figures.rejected, figures.count) == (0, 6, 6)
    counts = {
        reason: registry.get_sample_value("fraud_filter_rejected_records_total", {**LABELS, "reason": reason})
        for reason in ("empty-record", "malformed-json", "missing-field", "wrong-type", "other")
    }
    assert counts == {"empty-record": 1, "malformed-json": 1, "missing-field": 2, "wrong-type": 1, "other": 1}


def test_records_without_headers_and_earlier_than_their_payment_are_counted_apart(outputs: Outputs) -> None:
    registry = Registry()
    with Probe(outputs.stage.settings(), registry) as probe:
        early, right = outputs.pay(*_large(2))
        outputs.foreign()
        outputs.foreign(rejected=True)
        outputs.flag([early], timestamp_ms=early.timestamp_ms + 3_600_000)
        (last,) = outputs.flag([right])
        figures = _seen(probe, 4)
    assert (figures.flagged, figures.unreadable, figures.negative, figures.count) == (2, 2, 1, 1)
    assert registry.get_sample_value("fraud_filter_unreadable_records_total", LABELS) == 2
    assert registry.get_sample_value("fraud_filter_negative_latency_records_total", LABELS) == 1
    last_output = registry.get_sample_value("fraud_filter_last_output_timestamp_seconds", LABELS)
    assert last_output == pytest.approx(last.timestamp_ms / 1000, abs=0.5)


def test_reset_begins_a_new_window_and_still_knows_what_was_decided(outputs: Outputs) -> None:
    with Probe(outputs.stage.settings()) as probe:
        assert probe.snapshot().last_seen_age_s is None
        payments = outputs.pay(*_large(6))
        outputs.flag(payments[:4])
        _seen(probe, 4)
        probe.reset()
        empty = probe.snapshot()
        assert (empty.flagged, empty.count, empty.p50_ms, empty.max_ms) == (0, 0, None, None)
        assert empty.source_offsets == {0: 3}
        assert empty.last_seen_age_s is not None
        assert probe.distribution() == {}
        outputs.flag([payments[0], *payments[4:]])
        figures = _seen(probe, 3)
    assert (figures.flagged, figures.duplicates, figures.count) == (3, 1, 2)
    assert figures.source_offsets == {0: 5}


def test_laps_are_apart_from_the_window(outputs: Outputs) -> None:
    with Probe(outputs.stage.settings()) as probe:
        payments = outputs.pay(*_large(5))
        outputs.flag(payments[:2])
        _seen(probe, 2)
        assert probe.lap().flagged == 2
        assert probe.lap().flagged == 0
        outputs.flag(payments[2:])
        _seen(probe, 5)
        lap = probe.lap()
        assert (lap.flagged, lap.count) == (3, 3)
        probe.reset()
        outputs.reject(outputs.pay(b"bad"))
        _seen(probe, 1)
        assert (probe.lap().rejected, probe.snapshot().rejected, probe.snapshot().flagged) == (1, 1, 0)


def test_each_input_partition_is_told_apart(outputs: Outputs) -> None:
    with Probe(outputs.stage.settings()) as probe:
        both = [*outputs.pay(*_large(3)), *outputs.pay(*_large(2), partition=1)]
        outputs.flag(both)
        figures = _seen(probe, 5)
    assert (figures.duplicates, figures.source_offsets) == (0, {0: 2, 1: 1})


def test_a_partition_added_later_is_read(outputs: Outputs, admin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_module, "_REFRESH_S", 0.5)
    with Probe(outputs.stage.settings()) as probe:
        payments = outputs.pay(*_large(2))
        outputs.flag(payments[:1])
        _seen(probe, 1)
        admin.create_partitions({outputs.stage.flagged: NewPartitions(3)})
        _until(lambda: len(admin.describe_topics([outputs.stage.flagged])[0]["partitions"]) == 3, "a third partition")
        with Outputs(outputs.stage) as later:  # a producer that knows the new partition
            later.flag(payments[1:], partition=2)
        figures = _seen(probe, 2)
    assert (figures.flagged, figures.duplicates) == (2, 0)


@pytest.mark.parametrize("place", ["input", "flagged", "rejected"])
def test_a_topic_that_producers_stamp_is_refused(
    broker: Broker, topics: TopicMaker, tmp_path: Path, place: str
) -> None:
    names = {
        name: topics(name, message_timestamp_type="CreateTime" if name == place else "LogAppendTime")
        for name in ("input", "flagged", "rejected")
    }
    stage = Stage(broker.address, **names, directory=tmp_path)
    with pytest.raises(UsageError, match=rf"topic '{names[place]}' has message.timestamp.type=CreateTime: latency"):
        Probe(stage.settings()).start()


def test_a_topic_that_is_deleted_is_told_when_figures_are_asked_for(
    outputs: Outputs, admin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe_module, "_REFRESH_S", 0.5)
    with Probe(outputs.stage.settings()) as probe:
        admin.delete_topics([outputs.stage.rejected])

        def is_told() -> bool:
            with suppress(FraudFilterError):
                probe.raise_error()
                return False
            return True

        _until(is_told, "the probe tells that the topic is gone")
        with pytest.raises(FraudFilterError, match=outputs.stage.rejected):
            probe.snapshot()
    admin.create_topics({outputs.stage.rejected: {"num_partitions": 1, "replication_factor": 1}})  # for the fixture


def _argv(stage: Stage, *words: str) -> list[str]:
    topics = ["--input-topic", stage.input, "--flagged-topic", stage.flagged, "--rejected-topic", stage.rejected]
    return [
        *(sys.executable, "-m", "fraud_filter", "probe", "--kafka-bootstrap-servers", stage.address, *topics),
        *words,
    ]


class Program:
    """The probe as a program; `port` is where it serves its metrics."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        first = self.line()
        found = re.fullmatch(r"event=probe_started mode=(\S+) metrics=http://127\.0\.0\.1:(\d+)/metrics\n", first)
        assert found, first
        self.mode, self.port = found[1], int(found[2])

    def line(self, timeout_s: float = 30) -> str:
        """The next line that it prints."""
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], timeout_s)
        assert readable, f"no line within {timeout_s} s"
        return self.process.stdout.readline()

    def page(self) -> str:
        """What its endpoint serves."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
            return str(answer.read().decode())

    def interval_ms(self) -> dict[str, float]:
        """The latencies of the last interval that its endpoint tells, by quantile."""
        return {
            sample.labels["quantile"]: sample.value * 1000
            for family in text_string_to_metric_families(self.page())
            for sample in family.samples
            if sample.name == "fraud_filter_interval_latency_seconds"
        }

    def scrape(self) -> dict[tuple[str, str], float]:
        """The samples of its own metrics, by name and reason (or "")."""
        samples = [sample for family in text_string_to_metric_families(self.page()) for sample in family.samples]
        return {
            (sample.name, sample.labels.get("reason", "")): sample.value
            for sample in samples
            if sample.name.startswith("fraud_filter_") and not sample.labels.keys() & {"le", "quantile"}
        }


@contextmanager
def _running(stage: Stage, *words: str) -> Iterator[Program]:
    argv = _argv(stage, "--probe-port", "0", *words)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1) as process:
        try:
            yield Program(process)
        finally:
            if process.poll() is None:
                process.kill()


def _figures(line: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in line.split())


def test_the_program_serves_metrics_over_http(outputs: Outputs) -> None:
    with _running(outputs.stage, "--mode", "real-time", "--query-name", "q7", "--interval", "0.5") as program:
        assert program.mode == "real-time"
        name = "fraud_filter_flagged_records_total"
        assert program.scrape()[name, ""] == 0
        payments = outputs.pay(*_large(3))
        decided = outputs.flag([*payments, payments[0]])
        outputs.reject(outputs.pay(b"bad"))
        _until(lambda: program.scrape()[name, ""] == 4, "four flagged records")
        _until(lambda: program.scrape()["fraud_filter_rejected_records_total", "malformed-json"] == 1, "a rejected one")
        samples = program.scrape()
        assert 'flagged_records_total{mode="real-time",query="q7"} 4.0' in program.page()
    assert samples["fraud_filter_duplicate_records_total", ""] == 1
    assert samples["fraud_filter_end_to_end_latency_seconds_count", ""] == 4
    latencies = _latencies(payments, decided[:3])
    assert samples["fraud_filter_end_to_end_latency_seconds_sum", ""] >= sum(latencies) / 1000
    assert samples["fraud_filter_last_output_timestamp_seconds", ""] >= decided[-1].timestamp_ms / 1000


def test_the_program_ends_after_its_seconds_with_figures_in_a_file(outputs: Outputs, tmp_path: Path) -> None:
    payments = outputs.pay(*_large(20))
    decided = outputs.flag(payments)
    file = tmp_path / "probe.json"
    began = time.monotonic()
    argv = _argv(outputs.stage, "--probe-port", "0", "--seconds", "2.5", "--interval", "1", "--from-beginning")
    ran = subprocess.run([*argv, "--json", str(file)], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert 2.5 <= time.monotonic() - began < 30
    lines = [_figures(line) for line in ran.stdout.splitlines()]
    assert [line["event"] for line in lines] == ["probe_started", "probe", "probe", "probe_stopped"]
    assert sum(int(line["flagged"]) for line in lines[1:-1]) == 20
    assert sum(float(line["records_per_second"]) for line in lines[1:-1]) == pytest.approx(20)
    expected = _latencies(payments, decided)
    assert lines[-1]["max_ms"] == str(max(expected))
    figures = json.loads(file.read_text())
    assert {name: figures[name] for name in ("mode", "query", "flagged", "rejected", "duplicates", "count")} == {
        "mode": "micro-batch", "query": "fraud-filter", "flagged": 20, "rejected": 0, "duplicates": 0, "count": 20,
    }  # fmt: skip
    assert figures["p50_ms"] == sorted(expected)[9]
    assert figures["distribution"] == {str(latency): count for latency, count in sorted(Counter(expected).items())}
    assert figures["source_offsets"] == {"0": 19}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_program_with_a_summary(outputs: Outputs, tmp_path: Path, number: signal.Signals) -> None:
    file = tmp_path / "probe.json"
    with _running(outputs.stage, "--interval", "60", "--json", str(file)) as program:
        outputs.flag(outputs.pay(*_large(2)))
        _until(lambda: program.scrape()["fraud_filter_flagged_records_total", ""] == 2, "two flagged records")
        sent = time.monotonic()
        program.process.send_signal(number)
        out, error = program.process.communicate(timeout=30)
        assert time.monotonic() - sent < 10
    assert program.process.returncode == 0, error
    summary = _figures(out.splitlines()[-1])
    assert (summary["event"], summary["flagged"], summary["duplicates"]) == ("probe_stopped", "2", "0")
    assert "p99_ms" in summary
    assert "Traceback" not in error
    assert json.loads(file.read_text())["flagged"] == 2


def test_the_metrics_tell_the_latencies_of_the_last_interval(outputs: Outputs) -> None:
    with _running(outputs.stage, "--interval", "1") as program:
        payments = outputs.pay(*_large(20))
        time.sleep(0.1)
        expected = _latencies(payments, outputs.flag(payments))
        told: dict[str, str] = {}
        while told.get("flagged", "0") == "0":
            told = _figures(program.line())
        first = program.interval_ms()
        _until(lambda: math.isnan(program.interval_ms()["1"]), "an interval without a decision")
        second = program.interval_ms()
    assert told["flagged"] == "20"
    names = {"0.5": "p50_ms", "0.95": "p95_ms", "0.99": "p99_ms", "1": "max_ms"}
    assert first == pytest.approx({quantile: float(told[name]) for quantile, name in names.items()})
    assert first["1"] == pytest.approx(max(expected))
    assert all(math.isnan(value) for value in second.values())
    assert set(second) == set(names)


def _refused(argv: Sequence[str]) -> str:
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 2, ran.stdout
    assert len(ran.stderr.splitlines()) == 1
    return ran.stderr


def test_a_port_in_use_ends_the_program_with_exit_code_2(stage: Stage) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message = _refused(_argv(stage, "--probe-port", str(port), "--seconds", "1"))
    assert f"setting probe_port (--probe-port): port {port} of 127.0.0.1 is in use" in message


def test_a_missing_topic_ends_the_program_with_exit_code_2(stage: Stage) -> None:
    message = _refused([*_argv(stage, "--probe-port", "0"), "--rejected-topic", "nowhere"])
    assert "setting rejected_topic (--rejected-topic, FRAUD_REJECTED_TOPIC): topic 'nowhere' does not exist" in message
