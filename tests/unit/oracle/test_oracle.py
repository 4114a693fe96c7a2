"""What the oracle reads at limits; `tests/embedded/test_fuzzed_rules.py` compares it with Spark itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from decider import Decider
from fraud_filter.config import load
from fraud_filter.errors import UsageError
from fraud_filter.oracle.payments import PaymentReader
from fraud_filter.records import why_unread
from fraud_filter.rules.ruleset import Rule, RuleSet
from fraud_filter.schema import FIRST_TIME_US, Field, PaymentSchema, load_schema

READER = PaymentReader(PaymentSchema((Field("amount", "DOUBLE", False),)))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"[]", "malformed-json"),
        (b'{"amount": NaN}', "malformed-json"),
        (b'{"x": ' + b"1" * 500 + b"}", "malformed-json"),
        (b'{"x": "' + b"1" * 500 + b'"}', "malformed-json"),
        (b'{"x": "' + b"1" * 499 + b'"}', None),
        (b'{"x": ' + b"[" * 99 + b"]" * 99 + b"}", None),
        (b'{"x": ' + b"[" * 100 + b"]" * 100 + b"}", "malformed-json"),
    ],
)
def test_what_is_no_json_for_filter_and_audit(value: bytes, reason: str | None) -> None:
    """Other reasons are in `tests/embedded/test_query.py`."""
    assert READER.read(value).reason == reason


def test_what_the_filter_does_not_write_has_no_fields() -> None:
    written = b'{"amount": 9000, "rules": ["large-amount"]}'
    assert READER.read_flagged(written) == ((9000.0,), ("large-amount",))
    for other in (None, b"", b"{", b"[]", b'{"rules": "a"}', b'{"rules": [1]}', written[:-1] + b',"rules":[]}'):
        assert READER.read_flagged(other) == (None, ())
    assert READER.read_flagged(b'{"amount": "x", "rules": ["a"]}') == (None, ("a",))


def _read(kind: str, unit: str, text: str) -> Any:
    """The value of a field of this type, or the reason of the rejection."""
    schema = PaymentSchema((Field("x", kind, False),), time_unit=unit)
    reading = PaymentReader(schema).read(f'{{"x": {text}}}'.encode())
    return reading.reason or reading.fields[0]


@pytest.mark.parametrize(
    ("unit", "number", "micros"),
    [
        ("s", 1, 1_000_000), ("ms", -1, -1_000), ("us", 7, 7), ("s", 253_402_300_799, 253_402_300_799_000_000),
        ("s", 253_402_300_800, "wrong-type"), ("us", FIRST_TIME_US, FIRST_TIME_US), ("us", 10**30, "wrong-type"),
        ("ms", 1.0, "wrong-type"),
    ],
)  # fmt: skip
def test_numbers_are_times_where_a_setting_gives_their_unit(unit: str, number: float, micros: Any) -> None:
    assert _read("TIMESTAMP", unit, str(number)) == micros
    assert _read("TIMESTAMP", unit, '"1970-01-01T00:00:01Z"') == 1_000_000
    assert _read("DATE", unit, str(number)) == "wrong-type"


@pytest.mark.parametrize(
    ("timestamp_ms", "reason"),
    [(-62_135_596_800_000, None), (-62_135_596_800_001, "record-time"), (253_402_300_799_999, None),
     (253_402_300_800_000, "record-time")],
)  # fmt: skip
def test_the_time_of_a_record(timestamp_ms: int, reason: str | None) -> None:
    assert why_unread(b"k", b"v", timestamp_ms, 2) == reason
    assert why_unread(b"k", b"vv", timestamp_ms, 2) == "too-large"


def test_what_is_no_rule_of_the_language_is_refused_by_the_name_of_the_rule() -> None:
    rules = RuleSet(Path("rules.yml"), (Rule("r", 3, when="soundex(merchant) = 'S100'"),))
    with pytest.raises(UsageError, match=r"rules\.yml, line 3, rule 'r': the audit can't evaluate \"soundex\(merch"):
        Decider(load_schema(load().payment_schema), rules)
