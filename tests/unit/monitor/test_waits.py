"""Since when something keeps a query from reading its input, and from when on it counts as trouble."""

from __future__ import annotations

from fraud_filter.kafka.admin import Bounds
from fraud_filter.monitor.input_watch import Seen, Waits


def seen(bounds: dict[int, tuple[int, int]], *unknown: int) -> Seen:
    """A look at partitions with these ends and held offsets; `unknown` are further ones, of which no broker tells."""
    known = {number: Bounds(0, end, held) for number, (end, held) in bounds.items()}
    return Seen("id", frozenset([*bounds, *unknown]), known, {})


def test_a_partition_is_held_since_its_end_rests_before_records_of_a_transaction() -> None:
    waits = Waits()
    for now in (100, 130, 161):
        waits.look(seen({0: (5, 0), 1: (7, now), 2: (now, 3)}), now)  # what ends moves on at 2
    assert waits.held == {1: 100, 2: 161}
    assert waits.trouble(160, 60) == ""
    assert waits.trouble(161, 60) == "an open transaction holds partition 1, for 61 s by now"
    waits.look(seen({0: (5, 0), 1: (170, 0), 2: (170, 0)}), 162)
    assert waits.held == {}
    assert waits.trouble(500, 60) == ""


def test_partitions_without_a_leader_and_an_input_that_is_away_are_trouble_after_some_time() -> None:
    waits = Waits()
    waits.look(seen({0: (5, 0)}, 1, 2), 100)
    waits.look(seen({0: (5, 0)}, 1, 2), 170)
    assert waits.trouble(170, 60) == "no broker tells the end of partitions 1, 2, for 70 s by now"
    for now in (171, 240):
        waits.look(None, now)
    assert waits.trouble(240, 60) == "the ends of the input could not be read for 69 s"
    waits.look(seen({0: (5, 0), 1: (5, 0), 2: (5, 0)}), 241)
    assert waits.trouble(500, 60) == ""
