"""The schema of payments: its columns, and what is refused, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from fraud_filter.errors import UsageError
from fraud_filter.home import HOME
from fraud_filter.schema import load_schema
from fraud_filter.text.ddl import DdlError, parse_columns


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


# -- the columns that a payment may have, and what is wrong with others, and where


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("note STRING NULL", [("note", "STRING", False)]),
        ("a int not null comment 'x, y', b BYTE COMMENT \"it's\"", [("a", "INT", True), ("b", "TINYINT", False)]),
        ("a STRING COMMENT 'it\\'s' NOT NULL", [("a", "STRING", True)]),
        ("-- why\na LONG, /* and,\n how */ `b c` REAL", [("a", "BIGINT", False), ("b c", "FLOAT", False)]),
        ("a DECIMAL, b dec(12), c NUMERIC(9,2)", [("a", "DECIMAL(10, 0)", False), ("b", "DECIMAL(12, 0)", False),
                                                ("c", "DECIMAL(9, 2)", False)]),
        ("a struct<b: INT, `c d` array<STRING>> NOT NULL", [("a", "STRUCT<b: INT, `c d`: ARRAY<STRING>>", True)]),
        ("a MAP<STRING, MAP<STRING, BOOLEAN>>", [("a", "MAP<STRING, MAP<STRING, BOOLEAN>>", False)]),
        ("a TIMESTAMP_LTZ, b TIMESTAMP_NTZ, größe DATE", [("a", "TIMESTAMP", False), ("b", "TIMESTAMP_NTZ", False),
                                                          ("größe", "DATE", False)]),
    ],
)  # fmt: skip
def test_columns_are_read(text: str, columns: list[tuple[str, str, bool]]) -> None:
    assert list(map(tuple, parse_columns(text))) == columns


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1, column 1: the name of a field is missing"),
        ("a", "line 1, column 2: a type is missing"),
        ("a INT,", "line 1, column 7: the name of a field is missing"),
        ("a INT b INT", "line 1, column 7: 'b' may not stand here; a field may be NOT NULL and have a COMMENT"),
        ("a INT\n  DEFAULT 1", "line 2, column 3: 'DEFAULT' may not stand here"),
        ("a INT GENERATED ALWAYS AS (1)", "'GENERATED' may not stand here"),
        ("a STRING COLLATE UTF8_LCASE", "'COLLATE' may not stand here"),
        ("a INT NOT NULL NULL", "'NULL' may not stand here"),
        ("a INT, PRIMARY KEY (a)", "line 1, column 16: 'KEY' is no type that a field may have"),
        ("a DOUBLE NOT", "NULL must follow NOT"),
        ("a INT COMMENT x", "a text must follow COMMENT"),
        *((f"a {kind}", f"'{kind}' is no type that a field may have; there are STRING, BOOLEAN") for kind in
          ("VARIANT", "VOID", "INTERVAL", "JSON", "UUID", "DATETIME", "TEXT", "TIME", "VARCHAR", "OBJECT")),
        ("a DECIMAL(39, 2)", "a DECIMAL has 1 to 38 digits"),
        ("a DECIMAL(2, 3)", "no more of them behind the point"),
        ("a DECIMAL(2", r"'\)' is missing"),
        ("a DECIMAL(b)", "a number is missing"),
        ("a ARRAY", "'<' is missing"),
        ("a ARRAY<INT", "'>' is missing"),
        ("a MAP<INT, INT>", "the keys of a MAP are STRING"),
        ("a STRUCT<b: INT, B: INT>", "the field 'B' is there twice"),
        ("a STRUCT<>", "the name of a field is missing"),
        ("`a``b` INT", "a name may not hold a backtick"),
        ("a INT /* b", "can't be read"),
        ("a 'INT", "can't be read"),
        ("a " + "ARRAY<" * 2000 + "INT" + ">" * 2000, "nested more than 20 deep"),
    ],
)  # fmt: skip
def test_what_no_payment_may_have_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(DdlError, match=said):
        parse_columns(text)
