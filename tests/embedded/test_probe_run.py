"""The probe against the real broker: latencies from append times, copies, rejections and windows."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import NewPartitions

from fraud_filter import schema as layout
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.kafka import consumer as consumer_module
from fraud_filter.metrics.server import Registry
from fraud_filter.probe.probe import Probe
from fraud_filter.probe.tally import ProbeSnapshot
from lab.harness.broker import Broker
from outputs import Outputs, Placed, large, latencies
from running import Stage, until

TopicMaker = Callable[..., str]

LABELS = {"mode": "micro-batch", "query": "fraud-filter"}


def _seen(probe: Probe, records: int) -> ProbeSnapshot:
    """The figures once so many records were read."""

    def count() -> int:
        figures = probe.snapshot()
        return figures.flagged + figures.rejected + figures.unreadable

    until(lambda: count() >= records, f"{records} records, but {count()}")
    return probe.snapshot()


def test_latency_is_between_the_append_times_of_the_broker(outputs: Outputs) -> None:
    with Probe(outputs.stage.settings()) as probe:
        payments = outputs.pay(*large(40))
        decided: list[Placed] = []
        for at in range(0, 40, 10):  # four groups that waited longer and longer
            time.sleep(0.15)
            decided += outputs.flag(payments[at : at + 10])
        figures = _seen(probe, 40)
        distribution = probe.distribution()
    expected = sorted(latencies(payments, decided))
    assert expected[0] >= 150
    assert (figures.flagged, figures.rejected, figures.count, figures.negative) == (40, 0, 40, 0)
    measured = figures.p50_ms, figures.p90_ms, figures.p95_ms, figures.p99_ms, figures.p999_ms
    for share, latency_ms in zip((50, 90, 95, 99, 99.9), measured, strict=True):
        assert latency_ms == expected[math.ceil(40 * share / 100) - 1]
    assert figures.max_ms == expected[-1]
    assert distribution == Counter(expected)
    assert list(distribution) == sorted(distribution)


def test_old_records_are_read_on_request_only(outputs: Outputs) -> None:
    first, second = outputs.pay(*large(2))
    outputs.flag([first])
    with Probe(outputs.stage.settings()) as probe:
        outputs.flag([second])
        assert _seen(probe, 1).flagged == 1
        assert probe.snapshot().source_offsets == {0: 1}
    with Probe(outputs.stage.settings(), from_beginning=True) as probe:
        assert _seen(probe, 2).flagged == 2


class Counted:
    """A probe's metrics."""

    def __init__(self) -> None:
        self.registry = Registry()

    def __call__(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"fraud_filter_{name}", {**LABELS, **labels})


def test_repeated_rejected_foreign_and_early_decisions_are_counted_apart(outputs: Outputs) -> None:
    reasons = {
        "empty-record": "empty-record",
        "malformed-json": "malformed-json",
        "missing-field: amount,country": "missing-field",
        "missing-field: amount": "missing-field",
        "wrong-type: amount": "wrong-type",
        "spilled coffee": "other",
    }
    counted = Counted()
    with Probe(outputs.stage.settings(), counted.registry) as probe:
        payments = outputs.pay(*large(3))
        outputs.flag(payments)
        outputs.flag(payments[:2], partition=1)
        outputs.reject([payments[2]])
        figures = _seen(probe, 6)
        assert (figures.flagged, figures.rejected, figures.duplicates, figures.count) == (5, 1, 3, 3)
        for placed, reason in zip(outputs.pay(*[b"bad"] * len(reasons)), reasons, strict=True):
            outputs.reject([placed], reason)
        outputs.foreign()
        outputs.foreign(rejected=True)
        early, right = outputs.pay(*large(2))
        outputs.flag([early], timestamp_ms=early.timestamp_ms + 3_600_000)
        (last,) = outputs.flag([right])
        figures = _seen(probe, 16)
    assert (figures.flagged, figures.rejected, figures.duplicates) == (7, 7, 3)
    assert (figures.unreadable, figures.negative, figures.count) == (2, 1, 10)
    found = Counter({reason: counted("rejected_records_total", reason=reason) for reason in reasons.values()})
    assert found == Counter(reasons.values()) + Counter({"malformed-json": 1})  # what `reject` gives by default
    assert (counted("duplicate_records_total"), counted("flagged_records_total")) == (3, 7)
    assert counted("end_to_end_latency_seconds_count") == 10
    assert (counted("unreadable_records_total"), counted("negative_latency_records_total")) == (2, 1)
    assert counted("last_output_timestamp_seconds") == pytest.approx(last.timestamp_ms / 1000, abs=0.5)


def test_what_flagged_records_tell_of_rules_windows_and_scores_is_counted(outputs: Outputs) -> None:
    counted = Counted()
    with Probe(outputs.stage.settings(), counted.registry) as probe:
        payments = iter(outputs.pay(*large(11)))
        outputs.flag([next(payments), next(payments)], ("large", "night"), version="0123456789ab")
        outputs.flag([next(payments)], ("large",))
        outputs.flag([next(payments)], ("what is no name",), version="nor is this")
        model = {layout.HEADER_MODEL: "0123456789ab"}
        cut = {layout.HEADER_TRUNCATED: "spent_1h,payments_1h"}
        outputs.flag([next(payments), next(payments)], changes={"score": 0.93}, headers=model | cut)
        outputs.flag([next(payments)], changes={"score": 1}, headers=model | {layout.HEADER_TRUNCATED: "payments_1h"})
        for foreign in ("high", 10**400, float("nan")):
            outputs.flag([next(payments)], changes={"score": foreign}, headers=model)
        unknown = {layout.HEADER_TRUNCATED: "no name, of a feature"}
        outputs.flag([next(payments)], changes={"score": 0.5}, headers=unknown)
        _seen(probe, 11)
    version = "0123456789ab"
    by_rule = [("large", version), ("large", ""), ("night", version), ("other", "other")]
    assert [counted("rule_matches_total", rule=rule, version=of) for rule, of in by_rule] == [2, 1, 2, 1]
    by_feature = [counted("truncated_windows_total", feature=name) for name in ("payments_1h", "spent_1h", "other")]
    assert by_feature == [3, 2, 2]
    buckets = [counted("score_bucket", version=version, le=most) for most in ("0.9", "0.95", "0.99", "1.0")]
    assert (buckets, counted("score_count", version=version), counted("score_count", version="")) == (
        [0, 2, 2, 3],
        3,
        1,
    )


def test_a_lap_begins_anew_and_still_knows_what_was_decided(outputs: Outputs) -> None:
    with Probe(outputs.stage.settings()) as probe:
        assert probe.snapshot().last_seen_age_s is None
        assert probe.distribution() == {}
        payments = outputs.pay(*large(6))
        outputs.flag(payments[:4])
        _seen(probe, 4)
        probe.lap()
        empty = probe.lap()
        assert (empty.flagged, empty.count, empty.p50_ms, empty.max_ms) == (0, 0, None, None)
        assert empty.source_offsets == {0: 3}
        assert empty.last_seen_age_s is not None
        outputs.flag([payments[0], *payments[4:]])
        _seen(probe, 7)
        figures = probe.lap()
    assert (figures.flagged, figures.duplicates, figures.count) == (3, 1, 2)
    assert figures.source_offsets == {0: 5}


def test_a_partition_added_later_is_read(outputs: Outputs, admin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_module, "_REFRESH_S", 0.5)
    with Probe(outputs.stage.settings()) as probe:
        payments = outputs.pay(*large(2))
        outputs.flag(payments[:1])
        _seen(probe, 1)
        admin.create_partitions({outputs.stage.flagged: NewPartitions(3)})
        until(lambda: len(admin.describe_topics([outputs.stage.flagged])[0]["partitions"]) == 3, "a third partition")
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
    monkeypatch.setattr(consumer_module, "_REFRESH_S", 0.5)
    with Probe(outputs.stage.settings()) as probe:
        admin.delete_topics([outputs.stage.rejected])

        def is_told() -> bool:
            with suppress(FraudFilterError):
                probe.raise_error()
                return False
            return True

        until(is_told, "the probe tells that the topic is gone")
        with pytest.raises(FraudFilterError, match=outputs.stage.rejected):
            probe.snapshot()
    admin.create_topics({outputs.stage.rejected: {"num_partitions": 1, "replication_factor": 1}})  # for the fixture
