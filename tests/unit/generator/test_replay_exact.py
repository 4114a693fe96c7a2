"""A replay changes no value: what it can't keep is refused, by column and value."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from fraud_filter.errors import UsageError
from fraud_filter.generator.replay import Replay
from fraud_filter.generator.source import Steady
from fraud_filter.schema import load_schema

_SCHEMA = (
    "id STRING NOT NULL, i INT, b BIGINT, d DOUBLE, f FLOAT, dec DECIMAL(20,2), t TIMESTAMP, n TIMESTAMP_NTZ, "
    "day DATE, bin STRING, card_id STRING"
)


def _replayed(folder: Path, file: Path) -> list[tuple[bytes | None, str]]:
    (folder / "schema.ddl").write_text(_SCHEMA)
    replay = Replay(file, load_schema(folder / "schema.ddl"), pace=Steady(1000))
    return [
        (key, (value or b"").decode())
        for batch in replay.batches(0)
        for key, value in zip(batch.keys, batch.values, strict=True)
    ]


def _csv(folder: Path, column: str, value: str) -> str:
    file = folder / "x.csv"
    file.write_text(f"id,{column}\n007,{value}\n")
    return _replayed(folder, file)[0][1]


def _json(folder: Path, column: str, value: str) -> str:
    file = folder / "x.jsonl"
    file.write_text(f'{{"id":"007","{column}":{value}}}\n')
    return _replayed(folder, file)[0][1]


def _parquet(folder: Path, column: str, value: str) -> str:
    file = folder / "x.parquet"
    duckdb.connect().execute(f"COPY (SELECT '007' AS id, {value} AS {column}) TO '{file}' (FORMAT parquet)")
    return _replayed(folder, file)[0][1]


_READ = {"csv": _csv, "json": _json, "parquet": _parquet}


@pytest.mark.parametrize(
    ("kind", "column", "value", "sent"),
    [
        ("csv", "b", "9223372036854775807", "9223372036854775807"),
        ("csv", "i", "", "null"),
        ("csv", "i", '""', "null"),
        ("csv", "i", "1.0", "1"),
        ("csv", "dec", "9999999999999.99", "9999999999999.99"),
        ("csv", "f", "16777217", "16777217.0"),
        ("csv", "t", "2026-03-01T12:00:00.123456Z", '"2026-03-01T12:00:00.123456Z"'),
        ("csv", "t", "2026-03-01T12:00:00+02:00", '"2026-03-01T10:00:00.000Z"'),
        ("csv", "n", "2026-03-01T12:00:00.123456", '"2026-03-01 12:00:00.123456"'),
        ("csv", "card_id", '"a""b"', r'"a\"b"'),
        ("csv", "card_id", '""', '""'),
        ("csv", "card_id", "NULL", '"NULL"'),
        ("csv", "card_id", "\ufeffx", '"\ufeffx"'),
        ("json", "b", "9007199254740993", "9007199254740993"),
        ("json", "f", "0.1", "0.1"),
        ("json", "card_id", '"007"', '"007"'),
        ("json", "card_id", r'"\u0000\n\u00e9"', '"\\u0000\\n\u00e9"'),
        ("json", "card_id", "null", "null"),
        ("json", "card_id", '""', '""'),
        ("json", "bin", '"AAE="', '"AAE="'),
        ("parquet", "b", "9007199254740993", "9007199254740993"),
        ("parquet", "dec", "12.50::DECIMAL(20,2)", "12.5"),
    ],
)
def test_a_value_is_sent_as_it_is_recorded(tmp_path: Path, kind: str, column: str, value: str, sent: str) -> None:
    assert _READ[kind](tmp_path, column, value) == f'{{"id":"007","{column}":{sent}}}'


@pytest.mark.parametrize(
    ("kind", "column", "value", "why"),
    [
        *((kind, "i", value, "1.5 is no INT") for kind, value in (("csv", "1.5"), ("json", "1.5"), ("parquet", "1.5"))),
        *(("csv", "i", value, f"{value} is no INT") for value in ("1_000", "0x10", "99999999999", "x")),
        ("json", "i", "true", "true is no INT"),
        *(("csv", "d", value, f"{value} is a number that JSON can't say") for value in ("NaN", "Infinity", "1e400")),
        ("json", "d", "1e400", "is a number that JSON can't say"),
        ("parquet", "d", "'NaN'::DOUBLE", "is a number that JSON can't say"),
        *(
            (kind, "dec", f"123456789012345678.91{more}", "has more than 15 digits, of which some would change")
            for kind, more in (("csv", ""), ("json", ""), ("parquet", "::DECIMAL(20,2)"))
        ),
        ("csv", "t", "infinity", "infinity is not within the years 1 to 9999"),
        ("csv", "t", "99999-01-01T00:00:00Z", "is not within the years 1 to 9999"),
        ("csv", "day", "99999-01-01", "is not within the years 1 to 9999"),
        ("csv", "n", "2026-03-01T12:00:00+02:00", "has a zone, which TIMESTAMP_NTZ has not"),
        ("json", "card_id", "1.50", "is no text but a number"),
        ("parquet", "bin", r"'\xFF\x00'::BLOB", "is binary; give base64"),
    ],
)
def test_a_value_that_would_change_is_refused(tmp_path: Path, kind: str, column: str, value: str, why: str) -> None:
    with pytest.raises(UsageError, match=rf"x\.{kind}l? can't be read: column '{column}': ") as told:
        _READ[kind](tmp_path, column, value)
    assert why in str(told.value)


def test_the_key_of_a_record_of_json_is_its_text(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text('{"id":"007","card_id":"c1"}\n')
    assert _replayed(tmp_path, file) == [(b"c1", '{"id":"007","card_id":"c1"}')]
