"""Mappings: every conversion, the types of the schema, and mappings and values that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fraud_filter.errors import UsageError
from fraud_filter.generator.replay import Replay
from fraud_filter.schema import load_schema
from replay_files import DATA, SCHEMA, sent, write_csv


def _mapped(tmp_path: Path, field: str, how: str, header: str, *cells: str) -> list[Any]:
    """What `field` becomes when it is mapped like this; the other fields are constants."""
    file = write_csv(tmp_path / "file.csv", header, *cells)
    mapping = tmp_path / "mapping.yml"
    constants = dict.fromkeys(SCHEMA.required, "{constant: 1}") | {"created_at": '{constant: "2026-01-01"}'}
    fields = constants | {field: how}
    mapping.write_text("fields:\n" + "\n".join(f"  {name}: {value}" for name, value in fields.items()))
    return [payment[field] for payment in sent(Replay(file, SCHEMA, mapping=str(mapping)))]


def test_numbers_that_json_does_not_know_become_null(tmp_path: Path) -> None:
    assert _mapped(tmp_path, "amount", "a", "a", "1.5", "nan", "inf") == [1.5, None, None]


@pytest.mark.parametrize(
    ("field", "how", "header", "cells", "made"),
    [
        ("merchant", "m", "m,n", ["NA,1", ",2"], ["NA", None]),
        ("merchant", "{constant: Shop}", "m", ["x", "y"], ["Shop", "Shop"]),
        ("merchant", '{text: "{a}-{b}/{row}"}', "a,b", ["x,1", "y,2"], ["x-1/1", "y-2/2"]),
        ("merchant", '{text: "shop {row}"}', "a", ["x", "y"], ["shop 1", "shop 2"]),
        ("merchant", '{column: a, remove: "^X+|!$"}', "a", ["XXab!", "cdX"], ["ab", "cdX"]),
        ("merchant", "{column: a, values: {x: one}}", "a", ["x", "y"], ["one", "y"]),
        ("merchant", "{column: a, values: {x: one}, otherwise: rest}", "a", ["x", "y"], ["one", "rest"]),
        ("amount", "{column: cents, multiply: 0.01}", "cents", ["1250", "7"], [12.5, 0.07]),
        ("created_at", "t", "t", ["2026-03-01 10:00:00"], ["2026-03-01T10:00:00.000Z"]),
        ("created_at", "t", "t", ["2026-03-01T10:00:00.123456Z"], ["2026-03-01T10:00:00.123Z"]),
        ("created_at", "t", "t", ["2026-03-01T10:00:00+02:00"], ["2026-03-01T08:00:00.000Z"]),
        ("created_at", "{column: t, epoch: s}", "t", ["1772359200"], ["2026-03-01T10:00:00.000Z"]),
        ("created_at", "{column: t, epoch: s}", "t", ["1772359200.0"], ["2026-03-01T10:00:00.000Z"]),
        ("created_at", "{column: t, epoch: ms}", "t", ["1772359200123"], ["2026-03-01T10:00:00.123Z"]),
        ("created_at", "{column: t, epoch: us}", "t", ["1772359200123456"], ["2026-03-01T10:00:00.123Z"]),
        ("created_at", "{column: t, hours_since: 2026-03-01}", "t", ["1.5"], ["2026-03-01T01:30:00.000Z"]),
        ("created_at", "{column: t, hours_since: '2026-03-01T02:00+02:00'}", "t", ["1"], ["2026-03-01T01:00:00.000Z"]),
        ("created_at", '{column: t, format: "%d.%m.%y %H:%M"}', "t", ["01.03.26 10:30"], ["2026-03-01T10:30:00.000Z"]),
    ],
)  # fmt: skip
def test_conversions(field: str, how: str, header: str, cells: list[str], made: list[Any], tmp_path: Path) -> None:
    assert _mapped(tmp_path, field, how, header, *cells) == pytest.approx(made)


def test_types_follow_the_payment_schema(tmp_path: Path) -> None:
    ddl = tmp_path / "payment.ddl"
    ddl.write_text(
        "n BIGINT, d DECIMAL(10,2), b BOOLEAN, day DATE, at TIMESTAMP NOT NULL, wall TIMESTAMP_NTZ, s VARCHAR(9)"
    )
    row = {"n": "7", "d": "1.25", "b": "true", "day": "2026-03-01", "at": "2026-03-01T10:00:00Z", "s": "x"}
    row["wall"] = "2026-03-01 09:00:00"
    file = write_csv(tmp_path / "file.csv", ",".join(row), ",".join(row.values()))
    [payment] = sent(Replay(file, load_schema(ddl)))
    assert payment == {
        "n": 7, "d": 1.25, "b": True, "day": "2026-03-01", "at": "2026-03-01T10:00:00.000Z",
        "wall": "2026-03-01T09:00:00.000", "s": "x",
    }  # fmt: skip


def _refused(mapping: str) -> str:
    with pytest.raises(UsageError) as refused:
        Replay(DATA / "paysim.csv", SCHEMA, mapping=mapping)
    return str(refused.value)


def test_an_unknown_mapping_is_refused() -> None:
    assert _refused("nope") == ("--mapping nope: neither a file nor a shipped mapping (paysim, sparkov)")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fields: {", "can't be read"),
        ("nope: 1", "fields"),
        ("fields: {}", "fields"),
        ("fields: {amount: {column: a, constant: 1}}", "give exactly one of column, text and constant"),
        ("fields: {amount: {}}", "give exactly one of column, text and constant"),
        ("fields: {amount: {constant: 1, multiply: 2}}", "multiply goes with column only"),
        ("fields: {amount: {column: a, otherwise: x}}", "otherwise goes with values only"),
        ("fields: {amount: {column: a, times: 2}}", "fields.amount.times"),
        ("fields: {created_at: {column: a, epoch: minutes}}", "fields.created_at.epoch"),
        ("fields: {created_at: {column: a, epoch: s, format: '%Y'}}", "give only one of epoch, hours_since and format"),
        ("fields: {amount: {column: a, remove: '('}}", "fields.amount"),
        ("fields: {amount: {text: '{a'}}", "fields.amount"),
        ("fields: {amount: {text: '{a:5}'}}", "only a column's name may stand in braces"),
        ("fields: {amount: {column: a, values: {}}}", "fields.amount.values"),
        ("fields: {nope: a}", "'nope' is not a field of a payment; the fields are payment_id"),
        ("fields: {amount: a}", "the required field 'payment_id' is missing"),
    ],
)
def test_malformed_mappings_are_refused(text: str, said: str, tmp_path: Path) -> None:
    mapping = tmp_path / "mapping.yml"
    mapping.write_text(text)
    message = _refused(str(mapping))
    assert said in message
    assert str(mapping) in message


@pytest.mark.parametrize(
    ("field", "how", "cell", "said"),
    [
        ("amount", "a", "12,50 EUR", "column 'a' for field 'amount' (DOUBLE)"),
        ("created_at", "a", "yesterday", "column 'a' for field 'created_at' (TIMESTAMP)"),
        ("created_at", "{column: a, epoch: s}", "soon", "column 'a' for field 'created_at' (TIMESTAMP)"),
        ("created_at", "{column: a, format: '%Y'}", "soon", "column 'a' for field 'created_at' (TIMESTAMP)"),
        ("created_at", "{constant: 5}", "x", "numbers are no times"),
        ("amount", "{column: a, epoch: s}", "5", "epoch makes a time, not a DOUBLE"),
    ],
)
def test_values_that_do_not_convert_are_refused(field: str, how: str, cell: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        _mapped(tmp_path, field, how, "a", f'"{cell}"')
    assert said in str(refused.value)
