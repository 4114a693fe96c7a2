"""Starts a contender again when the machine was not ours meanwhile: a hypervisor shares cores between its guests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lab.bench.results.result import StartResult

#: Of the processor time that was wanted while measuring; on a quiet machine it is less than a hundredth.
MOST_STOLEN = 0.05


def run_undisturbed(run: Callable[[int], StartResult], repeats: int, say: Callable[[str], None]) -> StartResult:
    """The first start of which others took no more than `MOST_STOLEN`; when there is none, the least disturbed one.

    What decides is the machine's own count and never a start's figures. A start that failed, or whose audit found
    something, is not put aside.

    Args:
        run: starts and measures; its argument is how often that was done before.
        repeats: how often it may be done again.
    """
    tried: list[StartResult] = []
    for again in range(repeats + 1):
        start = replace(run(again), repeated=again)
        if not start.ok:
            return start
        tried.append(start)
        share = start.stolen_share or 0.0
        if share <= MOST_STOLEN:
            break
        end = "it is started again" if again < repeats else "the least disturbed start counts"
        say(f"round {start.round}, {start.contender}: others took {share:.0%} of the processor time, {end}")
    return replace(min(tried, key=lambda start: start.stolen_share or 0.0), repeated=len(tried) - 1)
