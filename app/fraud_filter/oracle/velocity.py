"""Computes features without Spark: for each key the last payments, one after the other, in the order of offsets."""

from __future__ import annotations

import decimal
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

from fraud_filter.oracle.predicates import ordered
from fraud_filter.rules.features import STRIDE, Feature, reach_ms, weight
from fraud_filter.schema import PaymentSchema

#: A payment's place among those of its key, as `query/velocity` packs it.
_OFFSET_BITS = 21
#: Payments between two looks for keys that are idle, and how far a broker's clock may go back.
_FORGET_EVERY, _CLOCK_MS = 100_000, 3_600_000
_EXACT = decimal.Context(prec=60)


class _Held(NamedTuple):
    place: int
    at_ms: int
    fields: tuple[Any, ...]


@dataclass
class _Period:
    """What the state has of a key in a period: the last payments, newest first, and what decays, added up, by name."""

    held: list[_Held] = field(default_factory=list)
    sums: dict[str, float] = field(default_factory=dict)


class Velocity:
    """Remembers payments of one partition by their key.

    A window holds the payments of the key that came before a payment, or are it, with a time in the `over` before its
    own; of these the state keeps the last ones. The time is that of the append, or the payment's own (`by`). State lies
    in periods: a payment is put into each that it lies in, and decided by the one in which all of its window lies.
    """

    def __init__(self, features: Sequence[Feature], schema: PaymentSchema, most: int) -> None:
        """`most` payments of a key are remembered (setting velocity_payments)."""
        self._features = tuple(features)
        self._at = {field.name: at for at, field in enumerate(schema.fields)}
        self._key_at = self._at[features[0].per]
        self._time_at = self._at[features[0].by] if features[0].by else None
        self._late_ms = features[0].late_ms
        self._most = most
        self._longest_ms = max(feature.over_ms for feature in features)
        self._decaying = [feature for feature in features if feature.half_ms]
        self._windows = {feature.over_ms for feature in features if not feature.half_ms}
        self._reach_ms = reach_ms(features)
        #: By key and beginning.
        self._periods: dict[Any, dict[int, _Period]] = {}
        self._seen = 0

    def see(self, offset: int, timestamp_ms: int, fields: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """The features of the next payment of the partition, appended at `timestamp_ms`, which is remembered, in the
        order of the file; and the names of those whose window may be cut short.
        """
        key = fields[self._key_at]
        if key is None:
            return (None,) * len(self._features), ()
        self._forget(timestamp_ms)
        now_ms = self._time_ms(timestamp_ms, fields)
        begin, period = self._remember(key, offset, now_ms, fields)
        windows = {
            length: [one for one in period.held if now_ms - length < one.at_ms <= now_ms] for length in self._windows
        }
        values = tuple(
            self._decayed(feature, now_ms - begin, period)
            if feature.half_ms
            else self._value(feature, now_ms, windows[feature.over_ms])
            for feature in self._features
        )
        exact = (feature for feature in self._features if not feature.half_ms)
        is_full = len(period.held) >= self._most
        return values, tuple(one.name for one in exact if is_full and period.held[-1].at_ms > now_ms - one.over_ms)

    def _time_ms(self, timestamp_ms: int, fields: Sequence[Any]) -> int:
        """The time by which windows go: the payment's own where that is wanted and can be believed."""
        own_us = fields[self._time_at] if self._time_at is not None else None
        if own_us is None:
            return timestamp_ms
        own_ms = int(own_us // 1000)
        return own_ms if timestamp_ms - self._late_ms <= own_ms <= timestamp_ms else timestamp_ms

    def _remember(self, key: Any, offset: int, now_ms: int, fields: tuple[Any, ...]) -> tuple[int, _Period]:
        """Puts a payment into each period that it lies in; the one that decides it, and when that begins."""
        every_ms = STRIDE * self._longest_ms
        newest = now_ms // every_ms * every_ms
        is_shared = now_ms - newest < self._longest_ms
        place = (now_ms << _OFFSET_BITS) + (offset & (1 << _OFFSET_BITS) - 1)
        periods = self._periods.setdefault(key, {})
        for begin in (newest, newest - every_ms)[: 1 + is_shared]:
            period = periods.setdefault(begin, _Period())
            period.held.append(_Held(place, now_ms, fields))
            period.held.sort(reverse=True)  # in order already, but where times go back
            del period.held[self._most :]
            self._add(period, now_ms - begin, fields)
        return begin, periods[begin]

    def _add(self, period: _Period, age_ms: int, fields: Sequence[Any]) -> None:
        """Adds a payment to what decays."""
        for feature in self._decaying:
            number = fields[self._at[feature.field]] if feature.field else 1
            if number is not None:
                weighed = weight(age_ms, feature.half_ms) * float(number)
                period.sums[feature.name] = period.sums.get(feature.name, 0.0) + weighed

    def _decayed(self, feature: Feature, age_ms: int, period: _Period) -> float | None:
        total = period.sums.get(feature.name)
        return None if total is None else total / weight(age_ms, feature.half_ms)

    def _forget(self, timestamp_ms: int) -> None:
        """Lets go of periods that no payment looks at any more, now and then."""
        self._seen += 1
        if self._seen % _FORGET_EVERY:
            return
        gone = timestamp_ms - self._reach_ms - _CLOCK_MS
        kept = {
            key: {begin: one for begin, one in all_.items() if one.held[0].at_ms > gone}
            for key, all_ in self._periods.items()
        }
        self._periods = {key: periods for key, periods in kept.items() if periods}

    def _value(self, feature: Feature, now_ms: int, window: list[_Held]) -> Any:
        if feature.kind == "count":
            return len(window)
        if feature.kind == "seconds_since_last":
            return (now_ms - window[1].at_ms) / 1000 if len(window) > 1 else None
        if feature.kind == "first_seen":
            return (now_ms - window[-1].at_ms) / 1000 if window else None
        at = self._at[feature.field or ""]
        given = [one.fields[at] for one in window if one.fields[at] is not None]
        if feature.kind == "count_distinct":
            return len(set(given))
        return _OF_NUMBERS[feature.kind](given, feature.total) if given else None


def _sum(given: Sequence[Any], total: str) -> Any:
    """One after the other, the oldest first: a sum of floating-point numbers depends on the order."""
    if total == "DOUBLE":
        return reduce(operator.add, reversed(given), 0.0)
    if total == "BIGINT":
        return (sum(given) + 2**63) % 2**64 - 2**63
    return reduce(_EXACT.add, given)


def _mean(given: Sequence[Any], total: str) -> float:
    return float(_sum(given, total)) / len(given)


_OF_NUMBERS: dict[str, Callable[[Any, str], Any]] = {
    "sum": _sum,
    "avg": _mean,
    "min": lambda given, _: min(given, key=ordered),
    "max": lambda given, _: max(given, key=ordered),
}
