"""Labelled fraud: its share, its labels, its shapes, and that without it nothing changes."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import defaultdict
from typing import Any

import pytest

from fraud_filter.config import load
from fraud_filter.generator.payments import MadePayments, Shares
from fraud_filter.generator.source import Batch, Steady
from fraud_filter.schema import LEGITIMATE

START_MS = 1_772_366_400_000
WITH_FRAUD = Shares(flagged=0.1, malformed=0.02, fraud=0.1)


def _batches(shares: Shares, payments: int, rate: float = 100, seed: int = 1) -> list[Batch]:
    source = MadePayments.for_settings(load(), Steady(rate), seed=seed, shares=shares)
    return list(itertools.islice(source.batches(START_MS), payments // 200))


def _fraud(batches: list[Batch]) -> dict[bytes, dict[str, list[tuple[float, dict[str, Any]]]]]:
    """When each payment of fraud is due, and what it is, by label and card."""
    found: dict[bytes, dict[str, list[tuple[float, dict[str, Any]]]]] = defaultdict(lambda: defaultdict(list))
    for batch in batches:
        for due_s, value, label in zip(batch.due_s.tolist(), batch.values, batch.labels or [], strict=True):
            if label not in (None, LEGITIMATE):
                payment = json.loads(value or b"")
                found[label][payment["card_id"]].append((due_s, payment))
    return found


def test_without_fraud_a_seed_gives_what_it_always_gave() -> None:
    """Names of merchants aside, which are the library's."""
    batches = _batches(Shares(malformed=0), 2000)
    fields = ("payment_id", "card_id", "amount", "merchant_category", "country")
    payments = [json.loads(value or b"") for batch in batches for value in batch.values]
    told = json.dumps([[payment[name] for name in fields] for payment in payments])
    assert hashlib.sha256(told.encode()).hexdigest()[:16] == "8585980a2fa9485d"
    assert all(batch.labels is None for batch in batches)


def test_the_same_seed_gives_the_same_fraud() -> None:
    one, two, other = (_batches(WITH_FRAUD, 4000, seed=seed) for seed in (1, 1, 2))
    assert [(batch.values, batch.labels) for batch in one] == [(batch.values, batch.labels) for batch in two]
    assert [batch.labels for batch in one] != [batch.labels for batch in other]


@pytest.mark.parametrize("rate", [5, 100, 5000])
def test_the_share_is_kept_at_every_rate_and_the_rest_is_labelled_where_it_is_ordinary(rate: float) -> None:
    batches = _batches(WITH_FRAUD, 20_000, rate)
    labels = [label for batch in batches for label in batch.labels or []]
    fraud = sum(label not in (None, LEGITIMATE) for label in labels)
    assert fraud / len(labels) == pytest.approx(0.1, abs=0.01)
    for batch in batches:
        for label, flagged, malformed in zip(batch.labels or [], batch.flagged, batch.malformed, strict=True):  # type: ignore[arg-type]
            assert (label is None) == bool(flagged or malformed)


def test_a_label_is_no_part_of_the_payment() -> None:
    for batch in _batches(WITH_FRAUD, 2000):
        for value, label in zip(batch.values, batch.labels or [], strict=True):
            assert value is None or label is None or b"label" not in value
            assert value is None or label in (None, LEGITIMATE) or label not in value


def test_schemes_look_like_what_they_are_called() -> None:
    found = _fraud(_batches(WITH_FRAUD, 60_000))
    assert set(found) == {b"card-testing", b"bust-out", b"impossible-travel", b"account-takeover"}
    for payments in found[b"card-testing"].values():
        assert all(0 < payment["amount"] <= 3 for _, payment in payments)
    assert max(map(len, found[b"card-testing"].values())) >= 8
    for payments in found[b"bust-out"].values():
        if len(payments) <= 8:  # more are two of the same card
            amounts = [payment["amount"] for _, payment in payments]
            assert amounts == sorted(amounts)
    for kind in (b"impossible-travel", b"account-takeover"):
        for payments in found[kind].values():
            assert all(payment["country"] != payment["card_country"] for _, payment in payments)
    for kind, most_s in ((b"card-testing", 120), (b"bust-out", 120)):
        spans = [payments[-1][0] - payments[0][0] for payments in found[kind].values() if len(payments) <= 15]
        assert sorted(spans)[len(spans) // 2] < most_s
