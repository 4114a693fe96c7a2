"""Trials at random: what comes when."""

from __future__ import annotations

from itertools import pairwise

import pytest

from lab.trials.at_random import draw

NAMES = [f"disturbance-{number}" for number in range(12)]


@pytest.mark.parametrize("seed", range(20))
def test_an_hour_has_ten_and_more_none_of_them_left_out_by_chance(seed: int) -> None:
    due = draw(seed, 3600, NAMES)
    assert len(due) >= 10
    assert all(60 <= later.at_s - earlier.at_s <= 300.1 for earlier, later in pairwise(due))
    assert due[-1].at_s <= 3600
    assert len({each.name for each in due}) == min(len(due), len(NAMES))


def test_the_seed_says_all() -> None:
    assert draw(7, 3600, NAMES) == draw(7, 3600, NAMES)
    assert draw(7, 3600, NAMES) != draw(8, 3600, NAMES)


@pytest.mark.parametrize("minutes", [1, 3, 5])
def test_a_short_run_has_one_too(minutes: int) -> None:
    due = draw(1, minutes * 60, NAMES)
    assert due
    assert all(each.at_s < minutes * 60 for each in due)
