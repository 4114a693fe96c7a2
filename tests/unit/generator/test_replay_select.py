"""SELECTs over a replayed file: what fields become, keys, nested fields, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fraud_filter.errors import UsageError
from fraud_filter.generator.replay import Replay
from fraud_filter.generator.source import Steady
from fraud_filter.schema import load_schema
from replay_files import DATA, SCHEMA, sent, write_csv

#: What the schema requires, but for the field that a test is about.
_REST = dict.fromkeys(SCHEMA.required, "1") | {"created_at": "'2026-01-01'"}


def _selected(tmp_path: Path, field: str, how: str, header: str, *cells: str) -> list[Any]:
    """What `field` becomes when it is selected like this; the other fields are constants."""
    file = write_csv(tmp_path / "file.csv", header, *cells)
    columns = ", ".join(f"{value} AS {name}" for name, value in (_REST | {field: how}).items())
    return [payment[field] for payment in sent(Replay(file, SCHEMA, select=f"SELECT {columns} FROM file"))]  # noqa: S608


@pytest.mark.parametrize(
    ("field", "how", "header", "cells", "made"),
    [
        ("amount", "a", "a", ["1.5", ""], [1.5, None]),
        ("amount", "CAST(cents AS DOUBLE) / 100", "cents", ["1250", "7"], [12.5, 0.07]),
        ("merchant", "m", "m,n", ["NA,1", ",2"], ["NA", None]),
        ("merchant", "a || '-' || row_number() OVER ()", "a,b", ["x,1", "y,2"], ["x-1", "y-2"]),
        ("created_at", "t", "t", ["2026-03-01 10:00:00"], ["2026-03-01 10:00:00"]),
        ("created_at", "t", "t", ["2026-03-01T10:00:00.123456Z"], ["2026-03-01T10:00:00.123456Z"]),
        ("created_at", "make_timestamp_ms(t::BIGINT)", "t", ["1772359200123"], ["2026-03-01 10:00:00.123"]),
        ("created_at", "strptime(t, '%d.%m.%y %H:%M')", "t", ["01.03.26 10:30"], ["2026-03-01 10:30:00"]),
    ],
)  # fmt: skip
def test_what_a_select_makes_is_sent_as_duckdb_writes_it(
    field: str, how: str, header: str, cells: list[str], made: list[Any], tmp_path: Path
) -> None:
    assert _selected(tmp_path, field, how, header, *cells) == pytest.approx(made)


@pytest.mark.parametrize("select", [None, "SELECT * FROM file", "FROM file -- all of it"])
def test_nested_json_stays_as_it_is(tmp_path: Path, select: str | None) -> None:
    ddl = tmp_path / "click.ddl"
    ddl.write_text(
        "id STRING NOT NULL, day STRING, page STRUCT<url: STRING, at: TIMESTAMP, size: INT>, "
        "tags ARRAY<STRUCT<k: STRING>>, `order` STRING"
    )
    click = {
        "id": "123e4567-e89b-12d3-a456-426614174000", "day": "2026-03-01T01:00:00+02:00",
        "page": {"url": "/a", "at": "2026-03-01T10:00:00.500Z", "size": 3}, "tags": [{"k": "v"}, {"k": None}],
        "order": "aGk=",
    }  # fmt: skip
    file = tmp_path / "clicks.jsonl"
    file.write_text(json.dumps(click | {"other": 1}))
    more = {} if select else {"other": 1}
    assert sent(Replay(file, load_schema(ddl), select=select, pace=Steady(10))) == [click | more]


def test_a_select_gives_the_key(tmp_path: Path) -> None:
    columns = ", ".join(f"{value} AS {name}" for name, value in _REST.items())
    file = write_csv(tmp_path / "file.csv", "shop", "7", "")
    select = tmp_path / "orders.sql"
    select.write_text(f"-- orders\nSELECT {columns}, shop AS _key FROM file;\n")
    replay = Replay(file, SCHEMA, select=str(select))
    assert [key for batch in replay.batches(0) for key in batch.keys] == [b"7", None]
    assert all("_key" not in payment for payment in sent(replay))


@pytest.mark.parametrize(
    ("select", "said"),
    [
        (
            "nope",
            "--select nope can't be read: No such file or directory; give a file, a query of the table 'file'",
        ),
        ("SELECT nope FROM file", 'Referenced column "nope" not found in FROM clause!'),
        ("SELEC amount FROM file", "Parser Error: syntax error"),
        ("DROP TABLE file", "Parser Error: syntax error"),
        ("SELECT 1 AS one; SELECT 2 AS two", "Parser Error: syntax error"),
        ("SELECT amount FROM file", "there is no column 'payment_id'; there are 'amount'. Give it with --select"),
        ("SELECT * FROM other", "Table with name other does not exist!"),
    ],
)
def test_unusable_selects_are_refused(select: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        Replay(DATA / "paysim.csv", SCHEMA, select=select)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("field", "how", "cell", "said"),
    [
        (
            "amount",
            "CAST(a AS DOUBLE)",
            "x",
            "Could not convert string 'x' to DOUBLE when casting from source column a",
        ),
        ("created_at", "strptime(a, '%Y')", "soon", 'Could not parse string "soon" according to format specifier "%Y"'),
    ],
)
def test_values_that_do_not_convert_are_refused(field: str, how: str, cell: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        _selected(tmp_path, field, how, "a", f'"{cell}"')
    assert said in str(refused.value)
