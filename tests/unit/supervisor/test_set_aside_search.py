"""When a search begins, and which records it finds: those that fail, that fail for a while, that are not to blame."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from fraud_filter.config import load
from fraud_filter.supervisor.failures import Reason, RestartableError
from fraud_filter.supervisor.narrowing import Narrowing, Span
from fraud_filter.supervisor.set_aside import Search, layers
from fraud_filter.supervisor.signals import Stop

Record = tuple[int, int]


def _search(narrowing: Narrowing, fails: Callable[[Record], bool]) -> list[list[Span]]:
    """Goes through with it; returns what was tried."""
    tried = []
    while spans := narrowing.next():
        tried.append(spans)
        records = ((span.partition, offset) for span in spans for offset in range(span.start, span.end))
        if any(map(fails, records)):
            narrowing.failed()
        else:
            narrowing.passed()
    return tried


@pytest.mark.parametrize("poison", [[(0, 5)], [(1, 100)], [(1, 899), (2, 0)], [(0, at) for at in range(40, 60)]])
def test_the_records_that_fail_are_found(poison: list[Record]) -> None:
    narrowing = Narrowing({0: 5, 1: 100, 2: 0}, {0: 800, 1: 900, 2: 1})
    tried = _search(narrowing, lambda record: record in poison)
    assert narrowing.found == poison
    assert not narrowing.is_vain
    assert not narrowing.is_unproven
    assert narrowing.done == {0: 800, 1: 900, 2: 1}
    assert len(tried) < 30 + 3 * len(poison)


def test_a_partition_is_gone_through_in_its_order_and_nothing_that_passed_is_tried_again() -> None:
    draw = random.Random(0)
    poison = {(partition, draw.randrange(300)) for partition in range(3) for _ in range(5)}
    narrowing, passed = Narrowing(dict.fromkeys(range(3), 0), dict.fromkeys(range(3), 300)), []
    while spans := narrowing.next():
        records = [(span.partition, offset) for span in spans for offset in range(span.start, span.end)]
        if poison & set(records):
            narrowing.failed()
        else:
            passed += records
            narrowing.passed()
    assert sorted(narrowing.found) == sorted(poison)
    assert sorted(passed) == sorted({(p, o) for p in range(3) for o in range(300)} - poison)
    for partition in range(3):
        assert [record for record in passed if record[0] == partition] == sorted(r for r in passed if r[0] == partition)


def test_where_everything_fails_no_record_is_to_blame() -> None:
    narrowing = Narrowing({0: 0, 1: 0}, {0: 1000, 1: 1000})
    tried = _search(narrowing, lambda _: True)
    assert narrowing.is_vain
    assert narrowing.found == []
    assert len(tried) < 20


def test_a_failure_by_chance_is_no_record_s_fault() -> None:
    chances = iter([True] * 7)
    narrowing = Narrowing({0: 0}, {0: 64})
    _search(narrowing, lambda record: record == (0, 0) and next(chances, False))
    assert narrowing.found == []
    assert narrowing.done == {0: 64}


def test_a_record_alone_is_unproven_until_others_pass() -> None:
    narrowing = Narrowing({0: 7}, {0: 8})
    _search(narrowing, lambda _: True)
    assert narrowing.is_unproven
    assert narrowing.found == []
    narrowing.vouch()
    assert narrowing.found == [(0, 7)]


def test_a_long_backlog_is_searched_no_further_than_needed() -> None:
    narrowing = Narrowing({0: 0, 1: 0}, {0: 1_000_000, 1: 10})
    _search(narrowing, lambda record: record == (0, 60_000))
    assert narrowing.found == [(0, 60_000)]
    assert narrowing.done == {0: 100_000, 1: 10}


def test_nothing_to_search() -> None:
    narrowing = Narrowing({0: 5}, {0: 5, 1: 9})
    assert narrowing.next() is None
    assert narrowing.done == {}


# -- when a search begins


@pytest.fixture
def search() -> Search:
    return Search(load(), Stop(1))


def _ends(search: Search, *reasons: Reason) -> None:
    for reason in reasons:
        search.ended(RestartableError(reason, "x"))


def test_a_search_begins_after_two_ends_at_the_same_place(search: Search) -> None:
    assert not search.start_at({0: 1, 1: 5})
    _ends(search, "query-failed")
    assert not search.start_at({0: 1, 1: 5})
    _ends(search, "java-gone")
    assert search.start_at({0: 1, 1: 5})


def test_progress_and_other_reasons_begin_none(search: Search) -> None:
    search.start_at({0: 1})
    _ends(search, "query-failed", "broker-away", "checkpoint-away", "lock-lost")
    assert not search.start_at({0: 1})
    _ends(search, "query-failed")
    assert not search.start_at({0: 2})
    _ends(search, "query-failed")
    assert not search.start_at({0: 2})


def test_what_ended_before_it_read_begins_none(search: Search) -> None:
    """A Java that does not start says nothing of the records."""
    search.start_at({0: 1})
    _ends(search, "query-failed", "java-gone", "java-gone")
    assert not search.start_at({0: 1})


def test_records_that_fail_are_left_out_of_what_features_look_back_at() -> None:
    assert layers({0: (3, 9), 1: (0, 2)}, []) == [{0: (3, 9), 1: (0, 2)}]
    assert layers({0: (3, 9), 1: (0, 2)}, [(0, 5), (0, 6), (1, 0), (1, 2), (2, 4)]) == [
        {0: (3, 5), 1: (1, 2)},
        {0: (7, 9)},
    ]
    assert layers({0: (3, 9)}, [(0, 8), (0, 3)]) == [{0: (4, 8)}]
