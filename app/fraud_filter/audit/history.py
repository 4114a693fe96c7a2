"""What features need beyond the audited payments: those before them, and which of them no audit can tell.

Features of a key whose payments lie on several partitions depend on the order in which the query read these, which is
told nowhere. Neither are those of a window that reaches back to before what is retained.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fraud_filter.audit.rulings import Rulings
from fraud_filter.config import Settings
from fraud_filter.kafka.offsets import first_since, first_time_ms, read_records
from fraud_filter.oracle import Decision, Oracle
from fraud_filter.rules.features import reach_ms


@dataclass
class History:
    """Where reading begins, by partition; `key_at` is the key's place among a payment's fields."""

    start: dict[int, int]
    key_at: int = 0
    #: Append time in ms since 1970 up to which windows reach back to before what can be read, by partition.
    untold_until: dict[int, int] = field(default_factory=dict)
    #: Keys with payments on several partitions.
    scattered: frozenset[Hashable] = frozenset()

    def can_tell(self, partition: int, timestamp_ms: int, decision: Decision) -> bool:
        """Whether the features of a valid payment follow from what is read."""
        key = decision.fields[self.key_at]
        return timestamp_ms > self.untold_until.get(partition, timestamp_ms - 1) and key not in self.scattered


def find_history(
    settings: Settings,
    rulings: Rulings,
    begin: Mapping[int, int],
    bounds: Mapping[int, tuple[int, int]],
    first: Mapping[int, int],
    last: Mapping[int, int],
) -> History:
    """Reads the input once to find it, where rules have features.

    Args:
        begin: where the query began at first, as far as that is known: its state has nothing of what lies before.
        bounds: the first retained offset and the end, by partition.
        first: the first audited offset, by partition; `last` the one after the last.
    """
    start, oracle = dict(first), rulings.remembering
    if oracle is None:
        return History(start)
    longest_ms = reach_ms(rulings.features)
    untold: dict[int, int] = {}
    for number, at in first.items():
        low = bounds[number][0]
        reaches = at
        if at > low and (time_ms := first_time_ms(settings, number, at, last[number])) is not None:
            reaches = first_since(settings, [number], max(time_ms - longest_ms, 0)).get(number, at)
        start[number] = min(max(reaches, begin.get(number, 0), low), at)
        is_cut = start[number] == low > begin.get(number, 0)
        oldest = first_time_ms(settings, number, low, last[number]) if is_cut else None
        if oldest is not None:
            untold[number] = oldest + longest_ms
    return History(start, oracle.key_at, untold, _scattered(settings, oracle, start, last))


def _scattered(
    settings: Settings, oracle: Oracle, start: Mapping[int, int], end: Mapping[int, int]
) -> frozenset[Hashable]:
    """The keys with payments on several partitions."""
    if len(end) < 2:
        return frozenset()
    home: dict[Any, int] = {}
    found: set[Hashable] = set()
    for number in sorted(end):
        for batch in read_records(settings, settings.input_topic, {number: start[number]}, {number: end[number]}):
            for message in batch:
                key = oracle.key(message.value())
                if home.setdefault(key, number) != number:
                    found.add(key)
    return frozenset(found - {None})
