from __future__ import annotations

from pathlib import Path

import pytest

from fraud_filter.errors import UsageError
from fraud_filter.home import HOME
from fraud_filter.schema import load_schema


def _load(tmp_path: Path, text: str) -> object:
    file = tmp_path / "payment.ddl"
    file.write_text(text)
    return load_schema(file)


def test_the_shipped_schema() -> None:
    schema = load_schema(HOME / "app/payment.ddl")
    assert [field.name for field in schema.fields] == [
        "payment_id", "card_id", "amount", "currency", "merchant", "merchant_category", "country", "card_country",
        "created_at",
    ]  # fmt: skip
    assert schema.required == ("payment_id", "card_id", "amount", "currency", "country", "created_at")


def test_types_nested_ones_too_and_nullable_for_the_parser(tmp_path: Path) -> None:
    file = tmp_path / "payment.ddl"
    file.write_text(
        "id BIGINT NOT NULL, price decimal(10, 2), tags ARRAY<STRING>, geo STRUCT<lat: DOUBLE, lon: DOUBLE>"
    )
    schema = load_schema(file)
    assert [field.type for field in schema.fields] == [
        "BIGINT", "DECIMAL(10, 2)", "ARRAY<STRING>", "STRUCT<lat: DOUBLE, lon: DOUBLE>",
    ]  # fmt: skip
    assert "NOT NULL" not in schema.ddl


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("amount", "no list of Spark DDL columns: line 1, column 7: a type is missing"),
        ("amount DOUBLE NOT", "line 1"),
        ("", "line 1, column 1: the name of a field is missing"),
        ("a STRING, A DOUBLE", "twice"),
        ("rules STRING", "reserved"),
        ("_offset BIGINT", "reserved"),
    ],
)
def test_what_is_no_schema_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        _load(tmp_path, text)
    assert "payment_schema" in str(refused.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.ddl can't be read"):
        load_schema(tmp_path / "nowhere.ddl")
