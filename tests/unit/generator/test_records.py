"""Records made up by type: each type, seeds, what is refused, and which schema is one of payments."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fraud_filter.config import load
from fraud_filter.generator.payments import MadePayments, Shares, made_source
from fraud_filter.generator.records import MadeRecords
from fraud_filter.generator.source import Steady
from fraud_filter.schema import load_schema

NOON_MS = round(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp() * 1000)
EVERY_TYPE = """
id STRING NOT NULL, tiny TINYINT NOT NULL, small SMALLINT NOT NULL, n INT, big BIGINT NOT NULL, f FLOAT NOT NULL,
d DOUBLE NOT NULL, price DECIMAL(5,2) NOT NULL, share DECIMAL(3,3) NOT NULL, yes BOOLEAN NOT NULL,
at TIMESTAMP NOT NULL, wall TIMESTAMP_NTZ NOT NULL, day DATE NOT NULL,
page STRUCT<url: STRING, size: INT> NOT NULL, tags ARRAY<STRUCT<k: STRING, v: ARRAY<INT>>> NOT NULL,
counts MAP<STRING, BIGINT> NOT NULL
"""


def _made(tmp_path: Path, ddl: str, seed: int = 1, malformed: float = 0) -> MadeRecords:
    file = tmp_path / "record.ddl"
    file.write_text(ddl)
    return MadeRecords(load_schema(file), Steady(100), seed=seed, malformed=malformed)


def _records(source: MadeRecords) -> list[dict[str, Any]]:
    return [json.loads(value or b"") for value in next(source.batches(NOON_MS)).values]


def test_each_type_has_values_of_its_own(tmp_path: Path) -> None:
    source = _made(tmp_path, EVERY_TYPE)
    batch, records = next(source.batches(NOON_MS)), _records(source)
    assert (len(records), bool(batch.malformed.any())) == (200, False)
    assert batch.flagged is None
    assert [key.decode() for key in batch.keys if key] == [record["id"] for record in records]
    first = records[0]
    assert first["id"].startswith("id-")
    assert (first["at"], first["wall"], first["day"]) == (
        "2026-03-01T12:00:00.000Z", "2026-03-01T12:00:00.000", "2026-03-01"
    )  # fmt: skip
    assert records[1]["at"] == "2026-03-01T12:00:00.010Z"
    assert all(0 <= record["price"] < 1000 and 0 <= record["share"] < 1 for record in records)
    assert all(0 <= record["tiny"] < 128 and isinstance(record["yes"], bool) for record in records)
    assert all(set(record["page"]) == {"url", "size"} for record in records)
    assert {len(record["tags"]) for record in records} == {0, 1, 2, 3}
    assert all(set(tag) == {"k", "v"} for record in records for tag in record["tags"])
    assert {type(count) for record in records for count in record["counts"].values()} == {int}
    absent = Counter(name for record in records for name, value in record.items() if value is None)
    assert set(absent) == {"n"}
    assert 5 <= absent["n"] <= 40


def test_the_same_seed_makes_the_same_records(tmp_path: Path) -> None:
    assert _records(_made(tmp_path, EVERY_TYPE)) == _records(_made(tmp_path, EVERY_TYPE))
    assert _records(_made(tmp_path, EVERY_TYPE)) != _records(_made(tmp_path, EVERY_TYPE, seed=2))


def test_a_share_is_malformed(tmp_path: Path) -> None:
    batch = next(_made(tmp_path, "n INT NOT NULL", malformed=0.5).batches(NOON_MS))
    assert 60 < batch.malformed.sum() < 140
    assert set(batch.keys) == {None}


@pytest.mark.parametrize(
    ("ddl", "made"),
    [("card_id STRING NOT NULL, extra STRING", MadePayments), ("card_id STRING NOT NULL, n INT NOT NULL", MadeRecords)],
)
def test_a_schema_that_requires_what_no_payment_has_is_none_of_payments(ddl: str, made: type, tmp_path: Path) -> None:
    file = tmp_path / "record.ddl"
    file.write_text(ddl)
    rules = tmp_path / "rules.yml"
    rules.write_text("rules:\n  - name: card\n    when: card_id IS NULL\n")
    settings = load({"payment_schema": file, "rules": rules})
    assert isinstance(made_source(settings, Steady(1), seed=1, shares=Shares()), made)
