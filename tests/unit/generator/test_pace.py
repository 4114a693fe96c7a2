from __future__ import annotations

import itertools

import numpy as np
import pytest

from fraud_filter.generator.source import AtRandom, Pace, Steady


def test_steady_is_evenly_spaced() -> None:
    assert Steady(4).due_s(0, 5).tolist() == [0, 0.25, 0.5, 0.75, 1]


def test_at_random_gaps_are_those_of_a_poisson_process_at_the_planned_rate() -> None:
    gaps_s = np.diff(AtRandom(50, seed=1).due_s(0, 20_000))
    assert gaps_s.sum() == pytest.approx(20_000 / 50, rel=0.001)
    assert [(gaps_s < at / 50).mean() for at in (0.1, 1, 3)] == pytest.approx([0.095, 0.632, 0.95], abs=0.01)


@pytest.mark.parametrize("pace", [Steady(70), AtRandom(70, seed=1)])
def test_due_times_rise_and_do_not_depend_on_how_they_are_asked_for(pace: Pace) -> None:
    whole = pace.due_s(0, 3000)
    assert 0 <= whole[0] < 0.1
    assert (np.diff(whole) > 0).all()
    parts = [pace.due_s(first, 300) for first in range(0, 3000, 300)]
    assert whole.tolist() == list(itertools.chain.from_iterable(part.tolist() for part in parts))
