"""How many payments in a row are decided, by which a start moves on."""

from __future__ import annotations

import pytest
from pyroaring import BitMap64

from fraud_filter.records import decision_id
from fraud_filter.supervisor.start_position import _count_decided


@pytest.mark.parametrize(
    ("decided", "offset", "count"),
    [
        ([], 0, 0),
        ([0, 1, 2], 0, 3),
        ([0, 1, 2], 1, 2),
        ([1, 2], 0, 0),
        ([5, 6, 8, 9], 5, 2),
        ([5, 6, 8, 9], 7, 0),
        ([2**47 - 2, 2**47 - 1], 2**47 - 2, 2),
        (range(100_000), 10, 99_990),
    ],
)
def test_those_in_a_row_are_counted_whatever_other_partitions_have(decided: list[int], offset: int, count: int) -> None:
    written = BitMap64(decision_id(number, one) for number in (0, 3) for one in range(50, 60))
    written |= BitMap64(decision_id(1, one) for one in decided)
    assert _count_decided(written, 1, offset) == count
