"""Features as Spark computes them against the oracle's, bit by bit: over hours and many periods of the state."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from exhaustive import exhaustive
from fraud_filter.config import load
from fraud_filter.oracle.velocity import Velocity
from fraud_filter.query.velocity import add_features, add_features_in_batch
from fraud_filter.rules.ruleset import load_rules
from fraud_filter.schema import load_schema

HELD = 6
DDL = "card STRING NOT NULL, amount DECIMAL(12, 2), ratio DOUBLE, id STRING, own TIMESTAMP"
_ROW = "_partition INT, _offset BIGINT, _timestamp TIMESTAMP, _is_rejected BOOLEAN, " + DDL.replace(" NOT NULL", "")
FEATURES = """\
  - {name: payments, per: card, over: 1 minute, value: count}
  - {name: spent, per: card, over: 2 minutes, value: sum(amount)}
  - {name: known, per: card, over: 2 minutes, value: first_seen}
  - {name: pace, per: card, decay: 1 second, value: count}
  - {name: flow, per: card, decay: 7 seconds, value: sum(amount)}
  - {name: drift, per: card, decay: 13 seconds, value: sum(ratio)}
"""
_START = datetime(2026, 3, 1, tzinfo=UTC)


def _time(us: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=us)


def _payments(seed: int) -> list[tuple[int, int, tuple[Any, ...]]]:
    """Offset, milliseconds and fields; some cards pay all the time, some rest for longer than a period."""
    draw = random.Random(seed)
    made, at = [], 0
    for offset in range(3000):
        at += draw.choice([1, 20, 700, 9000]) if draw.random() < 0.999 else 900_000
        card = draw.choices(["busy", "usual", "rare", None], [20, 10, 0.2, 1])[0]
        amount = draw.choice([None, Decimal(draw.randrange(1, 10**8)) / 100])
        made.append((offset, int(_START.timestamp()) * 1000 + at, (card, amount, draw.gauss(0, 1e3), f"p{offset}")))
    return made


def _own_us(draw: random.Random, ms: int) -> int | None:
    """The payment's own time in microseconds: late, too late to be believed, of the future, or none."""
    return draw.choice([None, ms * 1000 + 1, *((ms - late) * 1000 + 999 for late in (0, 1500, 90_000, 700_000))])


@pytest.mark.parametrize("kinds", exhaustive(["all", "count", "decay", "over"], but=["all", "over"]))
def test_spark_s_features_are_the_oracle_s_to_the_last_bit(spark: Any, tmp_path: Path, seed: int, kinds: str) -> None:
    (tmp_path / "payment.ddl").write_text(DDL)
    listed = "\n".join(line for line in FEATURES.splitlines() if kinds == "all" or kinds in line)
    if kinds == "over":  # by the payment's own time
        listed = listed.replace("}", ", by: own, late: 10 minutes}")
    (tmp_path / "rules.yml").write_text(f"features:\n{listed}\nrules:\n  - {{name: each, when: amount > 0}}\n")
    schema = load_schema(tmp_path / "payment.ddl")
    features = load_rules(tmp_path / "rules.yml", schema).features
    draw = random.Random(seed)
    payments = [(offset, ms, (*fields, _own_us(draw, ms))) for offset, ms, fields in _payments(seed)]
    assert len(schema.fields) == len(payments[0][2])
    rows = [
        (0, offset, _time(ms * 1000), False, *fields, None if own is None else _time(own))
        for offset, ms, (*fields, own) in payments
    ]
    settings = load({"velocity_payments": str(HELD)})
    found = add_features_in_batch(spark.createDataFrame(rows, _ROW), features, settings).orderBy("_offset").collect()
    velocity = Velocity(features, schema, HELD)
    expected = [velocity.see(*payment) for payment in payments]
    names = [feature.name for feature in features]
    assert [tuple(row[name] for name in names) for row in found] == [one[0] for one in expected]
    assert [row["_truncated"] for row in found] == [",".join(one[1]) for one in expected]
    if kinds == "all":
        assert {one[1] for one in expected} >= {(), ("payments", "spent", "known")}


def test_a_broker_s_clock_that_is_ahead_makes_no_later_payment_late(spark: Any, tmp_path: Path) -> None:
    """Spark drops what is behind its watermark, which goes by the newest time that it has seen."""
    (tmp_path / "payment.ddl").write_text(DDL)
    (tmp_path / "rules.yml").write_text(f"features:\n{FEATURES}\nrules:\n  - {{name: each, when: amount > 0}}\n")
    features = load_rules(tmp_path / "rules.yml", load_schema(tmp_path / "payment.ddl")).features
    now = datetime.now(UTC)
    ages = [timedelta(), timedelta(days=-2), timedelta(), timedelta(minutes=50), timedelta()]
    for offset, age in enumerate(ages):
        row = (0, offset, now - age, False, f"card {offset}", Decimal(1), 1.0, f"p{offset}", None)
        spark.createDataFrame([row], _ROW).coalesce(1).write.mode("append").parquet(str(tmp_path / f"in/{offset}"))
    stream = spark.readStream.schema(_ROW).option("maxFilesPerTrigger", 1)
    found = add_features(stream.parquet(str(tmp_path / "in/*")), features, load())
    query = (
        found.select("_offset", "payments").writeStream.format("memory").queryName("ahead").outputMode("update")
        .option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    )  # fmt: skip
    try:
        query.processAllAvailable()
        dropped = [
            operator.numRowsDroppedByWatermark for one in query.recentProgress for operator in one.stateOperators
        ]
    finally:
        query.stop()
    decided = {row["_offset"]: row["payments"] for row in spark.table("ahead").collect()}
    assert decided == dict.fromkeys(range(len(ages)), 1)
    assert sum(dropped) == 0
    assert len(dropped) >= len(ages)
