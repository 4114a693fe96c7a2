"""No record ends or holds the filter: what can't be decided is found, rejected and passed over."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from kafka.admin import ConfigResource, ConfigResourceType

from faults import events, metrics
from fraud_filter.audit.run import audit
from lab.harness.processes import free_ports
from running import Stage, payment, wait_until

#: Milliseconds since 1970, and a size that no heap of 512 MiB holds in one piece.
_BEYOND_MS, _HUGE = 1_700_000_000_000_000_000, 360_000_000
_FLAGGED_BYTES = 20_000
#: Seconds that the audit waits for a record of that size.
_UNPACKED_S = 120.0
_MODES = [
    "real-time",
    *(pytest.param(mode, marks=pytest.mark.exhaustive) for mode in ("micro-batch", "async-progress", "continuous")),
]


@pytest.fixture
def open_stage(stage: Stage, topics: Callable[..., str]) -> Stage:
    """A stage whose producers stamp their records."""
    wide = {"message_timestamp_type": "CreateTime", "message_timestamp_after_max_ms": str(2**63 - 1)}
    return replace(stage, input=topics("payments-open", **wide))


def _send(stage: Stage, partition: int, value: bytes, **record: Any) -> None:
    producer = Producer(
        {"bootstrap.servers": stage.address, "message.max.bytes": 1_000_000_000, "compression.type": "gzip"}
    )
    failed: list[Any] = []
    record |= {"on_delivery": lambda error, _: failed.append(error)}
    producer.produce(stage.input, value, partition=partition, **record)
    producer.flush(60)
    assert failed == [None]


def _payments(stage: Stage, name: str, count: int) -> set[str]:
    """Payments that are flagged, on both partitions; without a key."""
    ids = {f"{name}-{number}" for number in range(count)}
    for at, one in enumerate(sorted(ids)):
        _send(stage, at % 2, payment(one, 6000))
    return ids


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", _MODES)
def test_records_that_end_the_query_are_set_aside(open_stage: Stage, admin: Any, tmp_path: Path, mode: str) -> None:
    """The topic of flagged records takes small ones alone from then on: a first start refuses such a one."""
    stage, (port,) = open_stage, free_ports(1)
    rules = [{"name": "large", "when": "amount > 5000"}, {"name": "old", "when": "year(created_at) < 2000"}]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"rules": rules}))
    own = {"mode": mode, "rules": str(tmp_path / "rules.yml"), "metrics_port": str(port), "restart_backoff_s": "0.2"}
    own |= {"real_time_duration": "5 seconds", "spark_conf": json.dumps({"spark.driver.memory": "512m"})}
    before = _payments(stage, "before", 10)
    with stage.run(**own) as program:
        wait_until(lambda: stage.flagged_ids() == before, "the first payments are decided", program)
        small = {"max.message.bytes": str(_FLAGGED_BYTES)}
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, stage.flagged, configs=small)])
        _send(stage, 0, payment("old", 1).replace(b"2026-03-01T12", b"-290308-12-21T20"))
        _send(stage, 0, payment("late", 6000), timestamp=_BEYOND_MS)
        _send(stage, 1, b"\0" * _HUGE)
        long = payment("long", 6000).replace(b"Corner shop", b"x" * 2 * _FLAGGED_BYTES)
        _send(stage, 1, long, key=b"k")
        behind = _payments(stage, "behind", 20)
        wait_until(lambda: stage.flagged_ids() >= before | behind, "the payments behind are decided", program, 400)
        counted = "fraud_filter_records_set_aside_total"
        wait_until(lambda: metrics(port).get(counted) == 3, "they are counted", program)
        assert len(events(program, "record_set_aside")) == 3
        after = _payments(stage, "after", 4)
        wait_until(lambda: stage.flagged_ids() >= after, "the query goes on", program)
        assert program.stop(60) == 0, program.tail()
    found = [
        {name: value.decode() for name, value in record.headers} | {"": record.value}
        for record in stage.written()[stage.rejected]
    ]
    told = {(one["source.partition"], one["reject.reason"]): one[""] for one in found}
    assert told[("0", "wrong-type: created_at")]
    aside = sorted(
        (one["source.partition"], one["source.offset"]) for one in found if one["reject.reason"] == "undecidable"
    )
    assert aside == [("0", "6"), ("1", "5"), ("1", "6")]
    changed = {"rules": tmp_path / "rules.yml", "kafka_timeout_s": _UNPACKED_S}
    result = audit(stage.settings().model_copy(update=changed), examples=10)
    assert (result.lost, result.unexpected, result.examples["unexpected"]) == (0, 0, ()), result
    assert result.reject_reasons["undecidable"] == 3


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_features_are_right_behind_a_record_that_was_set_aside(stage: Stage, tmp_path: Path) -> None:
    """Those of the payments that the search decided, too: they count what came before them."""
    count = {"name": "count_10m", "per": "card_id", "over": "10 minutes", "value": "count"}
    rules = [{"name": "often", "when": "count_10m >= 2"}, {"name": "large", "when": "amount > 5000"}]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"features": [count], "rules": rules}))
    own = {"mode": "real-time", "rules": str(tmp_path / "rules.yml"), "restart_backoff_s": "0.2"}
    own |= {"real_time_duration": "5 seconds", "spark_conf": json.dumps({"spark.driver.memory": "512m"})}
    with stage.run(**own, velocity_partitions="1") as program:
        wait_until(lambda: bool(events(program, "started")), "the query runs", program)
        for at in range(3):
            _send(stage, 1, payment(f"first-{at}", 1, "c1"))
        wait_until(lambda: stage.flagged_ids() == {"first-1", "first-2"}, "the first payments are decided", program)
        _send(stage, 1, payment("before", 1, "c1"))
        _send(stage, 1, b"\0" * _HUGE)
        for at in range(3):
            _send(stage, 1, payment(f"behind-{at}", 1, "c2"))
        expected = {"first-1", "first-2", "before", "behind-1", "behind-2"}
        wait_until(lambda: stage.flagged_ids() == expected, "the payments behind are decided", program, 400)
        assert program.stop(60) == 0, program.tail()
    changed = {"rules": tmp_path / "rules.yml", "mode": "real-time", "kafka_timeout_s": _UNPACKED_S}
    result = audit(stage.settings().model_copy(update=changed), examples=10)
    assert (result.lost, result.unexpected, result.examples["unexpected"]) == (0, 0, ()), result
    assert result.reject_reasons == {"undecidable": 1}


def test_a_compacted_output_topic_is_refused_by_name(stage: Stage, topics: Callable[..., str]) -> None:
    """It takes no record without a key."""
    from fraud_filter.errors import UsageError
    from fraud_filter.query.preflight import count_partitions

    compacted = topics("compacted", cleanup_policy="compact")
    settings = stage.settings().model_copy(update={"flagged_topic": compacted})
    with pytest.raises(
        UsageError, match=rf"flagged_topic.*{compacted}.*cleanup\.policy=compact.*cleanup\.policy=delete"
    ):
        count_partitions(settings)
