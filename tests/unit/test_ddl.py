"""The columns that a payment may have, and what is wrong with others, and where."""

from __future__ import annotations

import pytest

from fraud_filter.text.ddl import DdlError, parse_columns


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
