"""A replay changes no value: what does not fit its field is for the filter to reject."""

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
_DECIMALS = (("csv", ""), ("json", ""), ("parquet", "::DECIMAL(20,2)"))


@pytest.mark.parametrize(
    ("kind", "column", "value", "sent"),
    [
        ("csv", "b", "9223372036854775807", "9223372036854775807"),
        ("csv", "i", "", "null"),
        ("csv", "i", '""', "null"),
        ("csv", "i", "1.5", "1.5"),
        *(("csv", "i", text, f'"{text}"') for text in ("007", "1_000", "0x10", "x")),
        *(("csv", "d", text, f'"{text}"') for text in ("NaN", "Infinity", "+1")),
        ("csv", "d", "1e400", "1e400"),
        *((kind, "dec", f"123456789012345678.90{more}", "123456789012345678.90") for kind, more in _DECIMALS),
        ("csv", "t", "2026-03-01T12:00:00+02:00", '"2026-03-01T12:00:00+02:00"'),
        ("csv", "n", "2026-03-01T12:00:00.123456", '"2026-03-01T12:00:00.123456"'),
        ("csv", "card_id", '"a""b"', r'"a\"b"'),
        ("csv", "card_id", '""', '""'),
        ("csv", "card_id", "NULL", '"NULL"'),
        ("csv", "card_id", "\ufeffx", '"\ufeffx"'),
        ("json", "b", "9007199254740993", "9007199254740993"),
        ("json", "i", "true", "true"),
        ("json", "card_id", r'"\u0000\n\u00e9"', r'"\u0000\n\u00e9"'),
        ("json", "card_id", "1.50", "1.50"),
        ("parquet", "b", "9007199254740993", "9007199254740993"),
        ("parquet", "t", "'2026-03-01T12:00:00.25Z'::TIMESTAMPTZ", '"2026-03-01 12:00:00.25+00"'),
        ("parquet", "d", "'NaN'::DOUBLE", '"nan"'),
    ],
)
def test_a_value_is_sent_as_it_is_recorded(tmp_path: Path, kind: str, column: str, value: str, sent: str) -> None:
    assert _READ[kind](tmp_path, column, value) == f'{{"id":"007","{column}":{sent}}}'


def test_what_is_binary_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"x\.parquet: column 'bin' is binary; give base64"):
        _parquet(tmp_path, "bin", r"'\xFF\x00'::BLOB")


def test_the_key_of_a_record_of_json_is_its_text(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text('{"id":"007","card_id":"c1"}\n')
    assert _replayed(tmp_path, file) == [(b"c1", '{"id":"007","card_id":"c1"}')]
