"""What goes or waits while a query runs: each lost offset counts once, whoever sees it first; the audit's gaps."""

from __future__ import annotations

import pytest

from fraud_filter.audit.gaps import Recorded, find_gaps
from fraud_filter.audit.result import Gap
from fraud_filter.checkpoint.notes import Loss
from fraud_filter.config import load
from fraud_filter.kafka.admin import Bounds
from fraud_filter.monitor.input_watch import Removals, Seen, Waits


def test_what_is_removed_after_the_committed_offset_counts_as_it_grows() -> None:
    removals = Removals(load())
    bounds = {0: (5, 100), 1: (30, 100)}
    assert removals.look("id", {0: 5, 1: 10}, bounds) == 20
    assert removals.look("id", {0: 5, 1: 10}, bounds) == 0
    assert removals.look("id", {0: 5, 1: 10}, {**bounds, 1: (35, 100)}) == 5
    assert removals.look("id", {0: 5, 1: 20}, {**bounds, 1: (35, 100)}) == 0  # a batch went on within what is gone
    assert removals.look("other", {1: 20}, {1: (35, 100)}) == 15  # a recreated topic counts from its own offsets
    assert removals.look("id", {9: 1}, bounds) == 0  # no such partition any more


def test_a_loss_that_was_seen_while_the_query_ran_does_not_count_again_at_a_restart() -> None:
    removals = Removals(load())
    assert removals.look("id", {0: 5}, {0: (9, 100)}) == 4
    assert removals.count([Loss("id", 0, 5, 9, 0.0)]) == 0
    assert removals.count([Loss("id", 0, 5, 12, 0.0), Loss("id", 1, 0, 2, 0.0)]) == 5
    assert removals.look("id", {0: 5}, {0: (12, 100)}) == 0


@pytest.mark.parametrize(
    ("losses", "committed", "low", "gaps"),
    [
        ([], 10, 10, []),
        ([], 10, 15, [(10, 15)]),
        ([(10, 15)], 15, 15, [(10, 15)]),
        ([(10, 15)], 30, 20, []),  # retention has passed it long ago
        ([(22, 25)], 30, 20, [(22, 25)]),  # within what is audited
        ([(10, 15)], 15, 18, [(10, 18)]),
        ([(10, 15)], 12, 18, [(10, 18)]),
    ],
)
def test_the_gaps_that_an_audit_tells(
    losses: list[tuple[int, int]], committed: int, low: int, gaps: list[tuple[int, int]]
) -> None:
    recorded = Recorded([Gap(0, *each) for each in losses], {0: committed})
    found = find_gaps(recorded, {0: low}, {0: low}, {0: 40})
    assert [(gap.start, gap.end) for gap in found] == gaps


def test_gaps_outside_of_the_audited_range_are_not_told() -> None:
    recorded = Recorded([Gap(0, 10, 15), Gap(0, 50, 60), Gap(3, 1, 2)], {0: 60})
    assert find_gaps(recorded, {0: 5}, {0: 20}, {0: 40}) == ()
    assert find_gaps(recorded, {0: 5}, {0: 5}, {0: 55}) == (Gap(0, 10, 15), Gap(0, 50, 60))


# -- since when something keeps a query from reading, and from when on it counts as trouble


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
