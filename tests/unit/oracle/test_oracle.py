"""The oracle's decisions in plain sight; `tests/embedded/test_oracle_spark.py` compares it with Spark itself."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from decider import Decider
from fraud_filter.config import load
from fraud_filter.errors import UsageError
from fraud_filter.oracle import Decision
from fraud_filter.oracle.payments import PaymentReader
from fraud_filter.records import why_unread
from fraud_filter.rules.ruleset import Rule, RuleSet, load_rules
from fraud_filter.schema import (
    DAY_US,
    FIRST_TIME_US,
    LAST_TIME_US,
    Field,
    PaymentSchema,
    input_schema,
    load_schema,
    time_us,
)

GOOD: dict[str, Any] = {
    "payment_id": "p1", "card_id": "c1", "amount": 12.5, "currency": "EUR", "merchant": "Corner shop",
    "merchant_category": "groceries", "country": "DE", "card_country": "DE",
    "created_at": "2026-03-01T12:00:00.123456Z",
}  # fmt: skip


def payment(**changes: Any) -> bytes:
    return json.dumps({name: value for name, value in {**GOOD, **changes}.items() if value is not ...}).encode()


@pytest.fixture(scope="module")
def shipped() -> Decider:
    settings = load()
    schema = load_schema(settings.payment_schema)
    return Decider(schema, load_rules(settings.rules, schema))


def make(time_unit: str = "", **types: str) -> Callable[..., Any]:
    """A reader of one optional field, as a function from JSON text to a reason or the value."""
    schema = PaymentSchema(tuple(Field(name, kind, False) for name, kind in types.items()), time_unit=time_unit)
    reader = PaymentReader(schema)

    def read(text: str) -> Any:
        reading = reader.read(text.encode())
        return reading.reason or reading.fields[0]

    return read


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        ({}, ()),
        ({"amount": 5000}, ("large-amount",)),
        ({"amount": 4999.99}, ()),
        ({"amount": 0}, ("invalid-amount",)),
        ({"amount": -3.5}, ("invalid-amount",)),
        ({"merchant_category": "cash_withdrawal", "country": "FR", "amount": 300}, ("foreign-cash",)),
        ({"merchant_category": "cash_withdrawal", "country": "FR", "card_country": ..., "amount": 300}, ()),
        (
            {"merchant_category": "gambling", "amount": 201, "created_at": "2026-03-01T04:59:59Z"},
            ("night-gambling",),
        ),
        ({"merchant_category": "gambling", "amount": 201, "created_at": "2026-03-01T05:00:00Z"}, ()),
        (
            {"merchant_category": "gambling", "amount": 201, "created_at": "2026-03-01T05:30:00+01:00"},
            ("night-gambling",),
        ),
        ({"payment_id": "pay-blocked-0002"}, ("isPaymentFlagged",)),
        ({"card_id": "card-stolen-0001"}, ("stolen-card",)),
        ({"card_id": "card-stolen-0001", "amount": 9000}, ("large-amount", "stolen-card")),
        ({"unknown": {"field": [1, 2]}}, ()),
    ],
)
def test_the_shipped_rules(shipped: Decider, changes: dict[str, Any], rules: tuple[str, ...]) -> None:
    (decision,) = shipped.decide([payment(**changes)])
    assert decision.reason is None
    assert decision.rules == rules
    assert len(decision.fields) == 9


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "empty-record"),
        (b" \n", "empty-record"),
        (b"not json", "malformed-json"),
        (b"[]", "malformed-json"),
        (payment()[:-5], "malformed-json"),
        (payment(amount=...), "missing-field"),
        (b"{}", "missing-field"),
        (payment(amount="12.5"), "wrong-type"),
        (payment(amount=float("nan")), "malformed-json"),
        (payment(merchant={"x": 1}), "wrong-type"),
        (payment(created_at="23:59:58"), "wrong-type"),
        (payment(x=0).replace(b"0}", b"1" * 500 + b"}"), "malformed-json"),
        (payment(x="1" * 500), "malformed-json"),
        (payment()[:-1] + b',"x":' + b"[" * 99 + b"]" * 99 + b"}", None),
        (payment()[:-1] + b',"x":' + b"[" * 100 + b"]" * 100 + b"}", "malformed-json"),
    ],
)
def test_rejections(shipped: Decider, value: bytes | None, reason: str | None) -> None:
    (decision,) = shipped.decide([value])
    assert decision.reason == reason
    assert reason is None or decision == Decision(reason, (), ())


@pytest.mark.parametrize("after", [b" rubbish", b"{}", b"\n" + payment(amount=9999), b"}", b",", b"\x00", b"]{", b"//"])
def test_what_follows_the_object_rejects_it(shipped: Decider, after: bytes) -> None:
    assert shipped.decide([payment() + after, payment() + b" \r\n\t"]) == [
        Decision("trailing-content", (), ()), shipped.decide([payment()])[0],
    ]  # fmt: skip
    assert shipped.reader.read(payment()[:-1] + b',"amount":1}' + after).reason == "trailing-content"


@pytest.mark.parametrize(
    "more", [b'"amount":1', b'"\\u0061mount":1', b'"x":[{"a":1,"b":{},"a":2}]', b'"x":{"":1,"":2}']
)
def test_a_name_that_stands_twice_rejects_it(shipped: Decider, more: bytes) -> None:
    assert shipped.decide([payment()[:-1] + b"," + more + b"}"])[0].reason == "duplicate-key"


def test_a_schema_id_stands_before_the_json_where_it_is_asked_for() -> None:
    settings = load({"record_format": "json-registry"})
    schema = input_schema(settings)
    oracle = Decider(schema, load_rules(settings.rules, schema))
    prefix = b"\0\0\0\1\xff"
    large = prefix + payment(amount=9000)
    values = [large, prefix + payment()[:-1], prefix, None, payment(), b"", prefix[:4], b"\1" + large[1:]]
    assert [decision.reason or decision.rules for decision in oracle.decide(values)] == [
        ("large-amount",), "malformed-json", "empty-record", "empty-record", *["no-schema-id"] * 4,
    ]  # fmt: skip
    written = payment(amount=9000, rules=["large-amount"])
    assert oracle.flagged_reader.read_flagged(written)[1] == ("large-amount",)
    for other in (None, b"", b"{", b"[]", b'{"rules": "a"}', b'{"rules": [1]}', written[:-1] + b',"rules":[]}'):
        assert oracle.flagged_reader.read_flagged(other) == (None, ())
    assert oracle.flagged_reader.read_flagged(payment(amount="x", rules=["a"])) == (None, ("a",))


def test_names_of_different_objects_may_be_the_same(shipped: Decider) -> None:
    other = b',"x":[{"amount":1},{"amount":{"amount":1}}],"y":{"x":1}}'
    assert shipped.decide([payment()[:-1] + other])[0].reason is None


@pytest.mark.parametrize(
    ("unit", "number", "micros"),
    [
        ("s", 1, 1_000_000), ("ms", -1, -1_000), ("us", 7, 7), ("s", 253_402_300_799, 253_402_300_799_000_000),
        ("s", 253_402_300_800, "wrong-type"), ("us", FIRST_TIME_US, FIRST_TIME_US), ("us", 10**30, "wrong-type"),
        ("ms", 1.0, "wrong-type"),
    ],
)  # fmt: skip
def test_numbers_are_times_where_a_setting_gives_their_unit(unit: str, number: float, micros: Any) -> None:
    assert make(unit, x="TIMESTAMP")(f'{{"x": {number}}}') == micros
    assert make(unit, x="TIMESTAMP")('{"x": "1970-01-01T00:00:01Z"}') == 1_000_000
    assert make(unit, x="DATE")(f'{{"x": {number}}}') == "wrong-type"


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01", 0), ("1970-01-01 00:00", 0), ("1970-01-01T00:00:00.1234567Z", 123_456),
        ("1970-01-01T01:00:00+01:00", 0), ("1970-01-01T01:00:00+0100", 0), ("1970-01-01 01:00:00+01", 0),
        ("1969-12-31T23:59:59.999999Z", -1), ("1969-12-31T23:30:00-00:30", 0),
        ("0001-01-01T00:00:00Z", FIRST_TIME_US), ("9999-12-31T23:59:59.999999Z", LAST_TIME_US),
    ],
)  # fmt: skip
def test_timestamps(text: str, micros: int) -> None:
    assert time_us(text) == micros
    assert time_us(text[:10], "DATE") // DAY_US == datetime.date.fromisoformat(text[:10]).toordinal() - 719_163


@pytest.mark.parametrize(
    ("timestamp_ms", "reason"),
    [(-62_135_596_800_000, None), (-62_135_596_800_001, "record-time"), (253_402_300_799_999, None),
     (253_402_300_800_000, "record-time")],
)  # fmt: skip
def test_the_time_of_a_record(timestamp_ms: int, reason: str | None) -> None:
    assert why_unread(b"k", b"v", timestamp_ms, 2) == reason
    assert why_unread(b"k", b"vv", timestamp_ms, 2) == "too-large"


@pytest.mark.parametrize(
    ("text", "endless"),
    [("1e2147483647", False), ("1e2147483648", True), ("1.5e2147483648", True), ("1e-2147483647", False),
     ("1.5e-2147483647", True), ('"1e9999999999"', False)],
)  # fmt: skip
def test_a_number_of_any_field_may_have_more_places_than_can_be_counted(text: str, endless: bool) -> None:
    value = f'{{"x": 1, "y": {text}}}'
    assert make(x="DECIMAL(10, 2)")(value) == ("malformed-json" if endless else Decimal("1.00"))
    assert make(x="INT")(value) == 1


@pytest.mark.parametrize(("digits", "read"), [(400, Decimal("0.11")), (401, "wrong-type"), (496, "wrong-type")])
def test_a_decimal_has_so_many_digits_behind_the_point(digits: int, read: Any) -> None:
    assert make(x="DECIMAL(10, 2)")(f'{{"x": 0.{"1" * digits}}}') == read


def _one_rule(when: str) -> RuleSet:
    return RuleSet(Path("rules.yml"), (Rule("r", 3, when=when),))


def test_what_is_no_rule_of_the_language_is_refused_by_the_name_of_the_rule() -> None:
    schema = load_schema(load().payment_schema)
    with pytest.raises(UsageError, match=r"rules\.yml, line 3, rule 'r': the audit can't evaluate \"soundex\(merch"):
        Decider(schema, _one_rule("soundex(merchant) = 'S100'"))


def test_a_block_list_on_a_number_compares_as_text() -> None:
    schema = PaymentSchema((Field("n", "INT", True),))
    oracle = Decider(schema, RuleSet(Path("rules.yml"), (Rule("r", 1, column="n", ids=("7", "08")),)))
    assert [decision.rules for decision in oracle.decide([b'{"n":7}', b'{"n":8}'])] == [("r",), ()]
