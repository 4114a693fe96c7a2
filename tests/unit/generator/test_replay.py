"""Replayed files: the shipped SELECTs, every format, the recorded pace, and files that are refused."""

from __future__ import annotations

import gzip
import itertools
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from fraud_filter.errors import UsageError
from fraud_filter.generator.replay import Replay, shipped
from fraud_filter.generator.source import Steady
from fraud_filter.schema import load_schema
from replay_files import DATA, SCHEMA, sent, write_csv

PAYMENT = {
    "payment_id": "p1",
    "card_id": "c1",
    "amount": 12.5,
    "currency": "EUR",
    "merchant": 'Müller & "Söhne"',
    "merchant_category": "grocery",
    "country": "NA",
    "card_country": None,
    "created_at": "2026-03-01T12:00:00.250Z",
}

#: What the schema requires, of any row.
ONES = ", ".join(f"1 AS {name}" for name in SCHEMA.required if name != "created_at") + ", NULL AS created_at"


def _due_s(replay: Replay) -> list[float]:
    return [due for batch in replay.batches(0) for due in batch.due_s.tolist()]


# -- the data sets


def test_paysim() -> None:
    replay = Replay(DATA / "paysim.csv", SCHEMA, select="paysim")
    payments = sent(replay)
    assert len(payments) == 24
    assert payments[0] == {
        "payment_id": "paysim-1",
        "card_id": "C9759607606",
        "amount": 411.15,
        "currency": "XXX",
        "merchant": "C2376503845",
        "merchant_category": "transfer",
        "country": "ZZ",
        "card_country": "ZZ",
        "created_at": "2025-01-01 01:00:00",  # step 1
    }
    assert {payment["merchant_category"] for payment in payments} == {
        "cash_deposit", "cash_withdrawal", "direct_debit", "purchase", "transfer",
    }  # fmt: skip
    assert payments[-1]["created_at"] == "2025-01-01 04:00:00"
    assert _due_s(replay) == [0.0] * 6 + [3600.0] * 6 + [7200.0] * 6 + [10800.0] * 6


@pytest.mark.parametrize("name", shipped())
def test_each_shipped_select_has_a_sample(name: str) -> None:
    batches = list(Replay(DATA / f"{name}.csv", SCHEMA, select=name, pace=Steady(100)).batches(0))
    assert [key for batch in batches for key in batch.keys] == [
        json.loads(value or b"")["card_id"].encode() for batch in batches for value in batch.values
    ]
    assert all(batch.flagged is None and not batch.malformed.any() for batch in batches)


# -- formats


def _as(kind: str, directory: Path) -> Path:
    file = directory / f"payments.{kind}"
    rows = [PAYMENT, PAYMENT | {"payment_id": "p2", "merchant": None}]
    if kind == "parquet":
        stamp = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
        pa.parquet.write_table(pa.Table.from_pylist([row | {"created_at": stamp} for row in rows]), file)
    elif kind.startswith("csv"):
        # Without quotes an empty cell is null; PyArrow's writer quotes what holds quotes.
        plain = directory / "plain.csv"
        pa.csv.write_csv(pa.Table.from_pylist(rows), plain)
        file.write_bytes(gzip.compress(plain.read_bytes()) if kind.endswith("gz") else plain.read_bytes())
    else:
        file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl", "ndjson", "json", "parquet"])
def test_a_file_with_the_fields_of_a_payment_needs_no_select(kind: str, tmp_path: Path) -> None:
    payments = sent(Replay(_as(kind, tmp_path), SCHEMA))
    times = {"created_at": "2026-03-01 12:00:00.25+00"} if kind == "parquet" else {}
    assert payments == [PAYMENT | times, PAYMENT | times | {"payment_id": "p2", "merchant": None}]


# -- pace


def _times(path: Path, *seconds: int | None) -> Path:
    start = datetime(2026, 3, 1, 12)
    stamps = ["" if second is None else (start + timedelta(seconds=second)).isoformat() for second in seconds]
    return write_csv(
        path, "payment_id,card_id,amount,currency,country,created_at", *(f"p,c,1,EUR,DE,{at}" for at in stamps)
    )


def test_recorded_pace_and_multiples_of_it(tmp_path: Path) -> None:
    file = _times(tmp_path / "f.csv", 0, 2, 6)
    assert _due_s(Replay(file, SCHEMA)) == [0, 2, 6]
    assert _due_s(Replay(file, SCHEMA, speed=4)) == [0, 0.5, 1.5]
    assert _due_s(Replay(file, SCHEMA, speed=0.5)) == [0, 4, 12]


def test_rows_out_of_order_or_without_a_time_are_due_with_the_one_before(tmp_path: Path) -> None:
    file = _times(tmp_path / "f.csv", None, 0, 5, 3, None, 8)
    assert _due_s(Replay(file, SCHEMA)) == [0, 0, 5, 5, 5, 8]


def test_a_pace_of_its_own_goes_on_over_batches(tmp_path: Path) -> None:
    file = _times(tmp_path / "f.csv", *range(1000))
    assert _due_s(Replay(file, SCHEMA, pace=Steady(50))) == pytest.approx([number / 50 for number in range(1000)])


def test_a_file_is_streamed(tmp_path: Path) -> None:
    """Rows before a bad one are sent before the bad one is read: the file is not read as a whole."""
    stamp = "2026-03-01T12:00:00Z"
    file = tmp_path / "large.csv"
    with file.open("w") as lines:
        lines.write("payment_id,card_id,amount,currency,country,created_at\n")
        lines.writelines(f"p{number},c{number % 7},{number}.5,EUR,DE,{stamp}\n" for number in range(100_000))
        lines.write(f"last,c,one cell too many,1,EUR,DE,{stamp}\n")
    batches = Replay(file, SCHEMA, pace=Steady(1000)).batches(0)
    first = next(batches)
    assert 0 < len(first.values) <= 200
    sent = [json.loads(value or b"")["payment_id"] for value in first.values]
    with pytest.raises(UsageError, match=r"large.csv can't be read: CSV Error on Line: 100002"):  # noqa: PT012 - what came before it is looked at
        for batch in batches:
            sent += [json.loads(value or b"")["payment_id"] for value in batch.values]
    assert sent == [f"p{number}" for number in range(len(sent))]
    assert len(sent) > 50_000


# -- refusals


def _refusal(file: Path, **arguments: Any) -> str:
    with pytest.raises(UsageError) as refused:
        list(itertools.islice(Replay(file, SCHEMA, **arguments).batches(0), 100))
    return str(refused.value)


def test_unusable_files_are_refused(tmp_path: Path) -> None:
    missing = tmp_path / "missing.csv"
    assert f"{missing} can't be read" in _refusal(missing)
    other = write_csv(tmp_path / "payments.xls", "x")
    assert "its name must end with .csv, .jsonl" in _refusal(other)
    for kind in ("parquet", "jsonl", "csv.gz"):
        damaged = write_csv(tmp_path / f"damaged.{kind}", "this is not it")
        assert f"{damaged} can't be read" in _refusal(damaged)
    assert "can't be read" in _refusal(
        write_csv(tmp_path / "uneven.csv", "a,b", "1,2", "1,2,3"),
        select=f"SELECT {ONES}, b AS merchant FROM file",  # noqa: S608
    )
    (tmp_path / "empty.csv").touch()
    assert "empty.csv: there is no column 'payment_id'" in _refusal(tmp_path / "empty.csv")


def test_missing_columns_are_named_with_those_that_exist() -> None:
    said = _refusal(DATA / "paysim.csv")
    assert "no column 'payment_id'; there are 'step', 'type'" in said
    assert "paysim, sparkov" in said
    said = _refusal(DATA / "paysim.csv", select="sparkov")
    assert 'Referenced column "trans_num" not found in FROM clause!' in said
    assert "--select sparkov, --replay " in said


def test_payments_without_a_time_need_a_rate(tmp_path: Path) -> None:
    ddl = tmp_path / "payment.ddl"
    ddl.write_text("amount DOUBLE NOT NULL")
    file = write_csv(tmp_path / "file.csv", "amount", "1", "2")
    with pytest.raises(UsageError, match="no recorded pace; give --rate"):
        Replay(file, load_schema(ddl))
    replay = Replay(file, load_schema(ddl), pace=Steady(10))
    assert sent(replay) == [{"amount": 1}, {"amount": 2}]
    assert [key for batch in replay.batches(0) for key in batch.keys] == [None, None]
