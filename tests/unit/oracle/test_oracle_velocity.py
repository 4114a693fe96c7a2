"""The oracle's features against DuckDB's window functions, and what SQL has no word for."""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from fraud_filter.oracle.velocity import Velocity
from fraud_filter.rules.features import HALVINGS, Feature
from fraud_filter.schema import Field, PaymentSchema

SCHEMA = PaymentSchema(
    (
        Field("card", "STRING", False), Field("amount", "BIGINT", False), Field("country", "STRING", False),
        Field("price", "DECIMAL(10, 2)", False), Field("ratio", "DOUBLE", False),
    )
)  # fmt: skip
LENGTHS_MS = (1000, 5000)


def _feature(kind: str, field: str | None, over_ms: int, total: str = "") -> Feature:
    return Feature(f"{kind}_{field}_{over_ms}", "card", over_ms, kind, field, "", total)


#: By the value, the same in DuckDB's SQL.
SQL = {
    ("count", None): "count(*)",
    ("sum", "amount"): "sum(amount)",
    ("avg", "amount"): "avg(amount)",
    ("min", "amount"): "min(amount)",
    ("max", "price"): "max(price)",
    ("sum", "price"): "sum(price)",
    ("count_distinct", "country"): "count(DISTINCT country)",
}
TOTALS = {"amount": "BIGINT", "price": "DECIMAL(14, 2)", "ratio": "DOUBLE", "country": ""}


def _drawn(draw: random.Random, count: int) -> list[tuple[int, int, tuple[Any, ...]]]:
    """Payments of a few cards, each with a millisecond of its own: SQL's RANGE takes all of one at once."""
    times = sorted(draw.sample(range(60_000), count))
    return [
        (
            offset,
            time_ms,
            (
                draw.choice(["a", "b", "c", None]),
                draw.choice([None, *range(-5, 100)]),
                draw.choice(["DE", "FR", "US", None]),
                draw.choice([None, Decimal(draw.randrange(10_000)) / 100]),
                draw.random(),
            ),
        )
        for offset, time_ms in enumerate(times)
    ]


def test_a_window_holds_what_came_before_a_payment_and_the_payment() -> None:
    kinds = ("count", "seconds_since_last", "first_seen")
    velocity = Velocity([_feature(kind, None, 1000) for kind in kinds], SCHEMA, 10)
    fields = ("a", 1, "DE", None, 0.5)
    seen = [velocity.see(n, time_ms, fields)[0] for n, time_ms in enumerate((0, 0, 400, 999, 1000, 5000))]
    assert seen == [
        (1, None, 0.0), (2, 0.0, 0.0), (3, 0.4, 0.4), (4, 0.599, 0.999), (3, 0.001, 0.6), (1, None, 0.0),
    ]  # fmt: skip


def _decaying(kind: str, field: str | None, half_ms: int) -> Feature:
    return Feature(f"{kind}-{half_ms}", "card", HALVINGS * half_ms, kind, field, "DOUBLE", "DOUBLE", half_ms)


def test_what_decays_halves_in_a_half_life_whatever_the_period() -> None:
    """Against the plain formula: steps of a 64th of a half-life make an error of 1.1 % at most."""
    features = [_decaying("count", None, 1000), _decaying("sum", "amount", 3000)]
    velocity, seen = Velocity(features, SCHEMA, 10), []
    times = sorted(random.Random(3).sample(range(600_000), 900))
    for n, time_ms in enumerate(times):
        seen.append((time_ms, n % 7))
        count, total = velocity.see(n, time_ms, ("a", n % 7, "DE", None, 0.5))[0]
        assert count == pytest.approx(sum(0.5 ** ((time_ms - at) / 1000) for at, _ in seen), rel=0.012)
        expected = sum(amount * 0.5 ** ((time_ms - at) / 3000) for at, amount in seen)
        assert total == pytest.approx(expected, rel=0.012, abs=0.02)


def test_a_sum_that_decays_has_nothing_without_a_number_and_no_key() -> None:
    velocity = Velocity([_decaying("sum", "amount", 1000)], SCHEMA, 10)
    amounts = (("a", None), ("a", 8), ("a", None), (None, 5))
    seen = [velocity.see(n, n * 1000, (card, amount, "DE", None, 0.5))[0] for n, (card, amount) in enumerate(amounts)]
    assert seen == [(None,), (8.0,), (4.0,), (None,)]


@pytest.mark.parametrize("seed", range(5))
def test_features_are_what_duckdb_finds_among_the_payments_before(seed: int) -> None:
    """Of windows by a payment's own time `tests/embedded/test_velocity_batch.py` tells the same."""
    payments = _drawn(random.Random(seed), 400)
    features = [_feature(*value, length, TOTALS.get(value[1] or "", "")) for value in SQL for length in LENGTHS_MS]
    velocity = Velocity(features, SCHEMA, 1000)
    own = [velocity.see(*payment)[0] for payment in payments]
    database = duckdb.connect()
    database.execute(
        "CREATE TABLE p(t BIGINT, card TEXT, amount BIGINT, country TEXT, price DECIMAL(10, 2), ratio DOUBLE)"
    )
    database.executemany("INSERT INTO p VALUES (?, ?, ?, ?, ?, ?)", [(now, *fields) for _, now, fields in payments])
    window = "OVER (PARTITION BY card ORDER BY t RANGE {} PRECEDING)"
    columns = (f"{sql} {window.format(length - 1)}" for sql in SQL.values() for length in LENGTHS_MS)
    known = database.execute(f"SELECT card, {', '.join(columns)} FROM p ORDER BY t").fetchall()  # noqa: S608
    for mine, (card, *theirs) in zip(own, known, strict=True):
        expected = theirs if card is not None else [None] * len(theirs)
        assert [pytest.approx(each) if isinstance(each, float) else each for each in mine] == expected


def test_a_late_payment_that_a_full_state_does_not_hold_sees_nothing_and_says_so() -> None:
    plain = (_feature(kind, None, 1000) for kind in ("count", "first_seen", "seconds_since_last"))
    features = [replace(feature, by="at", late_ms=20_000) for feature in plain]
    velocity = Velocity(features, PaymentSchema((*SCHEMA.fields, Field("at", "TIMESTAMP", False))), 2)
    seen = [
        velocity.see(n, 9000 + n, ("a", 1, "DE", None, 0.5, own_ms * 1000))
        for n, own_ms in enumerate((6000, 6100, 5900))
    ]
    assert [one[0] for one in seen] == [(1, 0.0, None), (2, 0.1, 0.1), (0, None, None)]
    assert [len(one[1]) for one in seen] == [0, 3, 3]


def test_a_full_window_is_told_of() -> None:
    velocity = Velocity([_feature("count", None, 1000), _feature("sum", "amount", 100_000, "BIGINT")], SCHEMA, 3)
    seen = [velocity.see(n, n * 600, ("a", 10, "DE", None, 0.5)) for n in range(5)]
    assert [one[0] for one in seen] == [(1, 10), (2, 20), (2, 30), (2, 30), (2, 30)]
    assert [one[1] for one in seen] == [(), (), *[("sum_amount_100000",)] * 3]


def test_floating_point_numbers_are_added_from_the_oldest_on() -> None:
    velocity = Velocity([_feature("sum", "ratio", 1000, "DOUBLE")], SCHEMA, 10)
    numbers = (0.1, 0.2, 0.3)
    sums = [velocity.see(n, n, ("a", 1, "DE", None, ratio))[0][0] for n, ratio in enumerate(numbers)]
    assert sums[-1] == 0.0 + 0.1 + 0.2 + 0.3 != 0.0 + 0.3 + 0.2 + 0.1


def test_nan_is_the_largest_number_and_whole_numbers_go_round() -> None:
    features = [
        _feature("min", "ratio", 1000), _feature("max", "ratio", 1000), _feature("sum", "amount", 1000, "BIGINT"),
    ]  # fmt: skip
    velocity = Velocity(features, SCHEMA, 10)
    velocity.see(0, 0, ("a", 2**63 - 1, "DE", None, float("nan")))
    low, high, total = velocity.see(1, 1, ("a", 1, "DE", None, 1.0))[0]
    assert low == 1.0
    assert high != high
    assert total == -(2**63)
