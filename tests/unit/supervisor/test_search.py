"""When a search begins."""

from __future__ import annotations

import pytest

from fraud_filter.config import load
from fraud_filter.supervisor.failures import Reason, RestartableError
from fraud_filter.supervisor.set_aside import Search, layers
from fraud_filter.supervisor.signals import Stop


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
