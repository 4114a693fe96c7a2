"""Which start counts when others took the processor meanwhile."""

from __future__ import annotations

from dataclasses import replace

from lab.bench.result import RateResult, StartResult
from lab.bench.run import run_undisturbed
from lab.harness.outcome import Audited


def _start(*shares: float | None, lost: int = 0, error: str | None = None) -> StartResult:
    rates = tuple(RateResult(100.0, stolen_share=share, audit=Audited(lost, 0, 0)) for share in shares)
    return StartResult("real-time", 2, rates, error=error)


def _run(*starts: StartResult, repeats: int = 2) -> tuple[StartResult, int, list[str]]:
    """What counts of the starts, how many were made, and what was said."""
    made: list[int] = []
    said: list[str] = []

    def run(again: int) -> StartResult:
        made.append(again)
        return starts[again]

    counts = run_undisturbed(run, repeats, said.append)
    assert made == list(range(len(made)))
    return counts, len(made), said


def test_an_undisturbed_start_is_not_repeated() -> None:
    quiet = _start(0.01, 0.05)
    assert _run(quiet) == (quiet, 1, [])


def test_what_is_not_counted_is_no_disturbance() -> None:
    unknown = _start(None, None)
    assert _run(unknown) == (unknown, 1, [])


def test_a_disturbed_start_is_repeated() -> None:
    disturbed, quiet = _start(0.01, 0.2), _start(0.02, 0.01)
    counts, made, said = _run(disturbed, quiet)
    assert (counts, made) == (replace(quiet, repeated=1), 2)
    assert said == ["round 2, real-time: others took 20% of the processor time, it is started again"]


def test_of_disturbed_starts_the_least_disturbed_counts() -> None:
    starts = _start(0.3, 0.1), _start(0.01, 0.1), _start(0.2, 0.2)
    counts, made, said = _run(*starts)
    assert (counts, made) == (replace(starts[1], repeated=2), 3)
    assert said[-1] == "round 2, real-time: others took 20% of the processor time, the least disturbed start counts"


def test_no_failure_is_put_aside() -> None:
    for failed in (_start(0.4, lost=1), _start(0.4, error="it ended with exit code 1")):
        assert _run(failed, _start(0.0)) == (failed, 1, [])
        counts, made, _ = _run(_start(0.4), failed, _start(0.0))
        assert (counts, made) == (replace(failed, repeated=1), 2)


def test_without_repeats_each_start_counts() -> None:
    disturbed = _start(0.4)
    counts, made, said = _run(disturbed, repeats=0)
    assert (counts, made) == (disturbed, 1)
    assert said == ["round 2, real-time: others took 40% of the processor time, the least disturbed start counts"]
