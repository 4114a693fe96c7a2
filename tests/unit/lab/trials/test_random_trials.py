"""Trials at random: what comes when, and what is taken for growth."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from lab.trials.at_random import draw
from lab.trials.growth import Life, Sample, Trend, find_trends, parse

NAMES = [f"disturbance-{number}" for number in range(12)]
MIB = 1024 * 1024


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


def lived(seconds: int, memory_mib: float, leak_mib_per_min: float, noise_mib: float = 20) -> list[Sample]:
    """A process with a warm-up of 150 MiB in two minutes, then with a leak, noise and a step of 20 MiB."""
    chance = random.Random(3)
    samples = []
    for at_s in range(0, seconds, 10):
        warm = min(1.0, at_s / 110)
        step = 20 if at_s > seconds / 2 else 0
        size = memory_mib - 150 * (1 - warm) + leak_mib_per_min * at_s / 60 + step + chance.uniform(0, noise_mib)
        samples.append(Sample(float(at_s), int(size * MIB), 50, 80))
    return samples


def memory_trend(samples: list[Sample]) -> Trend:
    (trend,) = [each for each in find_trends({Life("driver", 1, 1): samples}) if each.figure == "memory"]
    return trend


def test_a_leak_is_growth() -> None:
    trend = memory_trend(lived(3600, 500, 3))
    assert trend.grows
    assert trend.added > trend.allowed / MIB
    assert trend.rising > 0.95


@pytest.mark.parametrize(("leak", "noise"), [(0, 20), (0, 200), (0.5, 20), (-2, 20)])
def test_warm_up_noise_and_a_step_are_none(leak: float, noise: float) -> None:
    assert not memory_trend(lived(3600, 500, leak, noise)).grows


def test_threads_and_files_that_pile_up_are_growth() -> None:
    samples = [Sample(at_s, 500 * MIB, 50 + at_s // 60, 80 + at_s // 60) for at_s in range(0, 3600, 10)]
    grows = {trend.figure: trend.grows for trend in find_trends({Life("driver", 1, 1): samples})}
    assert grows == {"memory": False, "threads": True, "files": True}


def test_a_saw_whose_teeth_grow_is_no_growth_of_the_heap_and_a_rising_floor_is() -> None:
    def heap(at_s: int, leak_mib_per_min: float) -> int:
        return int((100 + at_s % 50 * (1 + at_s / 1000) + leak_mib_per_min * at_s / 60) * MIB)

    for leak, expected in ((0.0, False), (2.0, True)):
        samples = [Sample(at_s, 500 * MIB, 50, 80, heap(at_s, leak)) for at_s in range(0, 3600, 10)]
        trends = find_trends({Life("driver", 1, 1): samples})
        assert [trend.grows for trend in trends if trend.figure.startswith("heap")] == [expected]


def test_a_life_that_was_short_has_no_trend_and_lives_are_not_mixed() -> None:
    lives = {Life("executor", number, number): lived(300, 400 + 100 * number, 0) for number in range(10)}
    assert find_trends(lives) == []


def test_processes_are_known_by_their_command_line() -> None:
    text = """
12 4711 524288 41 97 /usr/bin/java -cp x org.apache.spark.deploy.SparkSubmit --conf a=b pyspark-shell
7 4700 40960 9 20 /opt/python/bin/python /opt/python/bin/fraud-filter run
1 4600 600 1 4 /sbin/docker-init -- entrypoint.sh fraud-filter run
99 5000 2 sh -c for process in /proc/[0-9]*
100 5000 900 1 4 sh -c cd "$process"
"""
    found = dict(parse(text, 5.0, {"driver": 1000, "filter": None}))
    assert found == {
        Life("driver", 12, 4711): Sample(5.0, 512 * MIB, 41, 97, 1000),
        Life("filter", 7, 4700): Sample(5.0, 40 * MIB, 9, 20, None),
    }
