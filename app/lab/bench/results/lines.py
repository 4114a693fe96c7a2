"""What a run says of a start that has ended."""

from __future__ import annotations

from lab.bench.results.result import StartResult
from lab.bench.results.table import rounded


def describe_start(start: StartResult) -> list[str]:
    """A line for each rate that was measured, and one for what ended the start before its time."""
    head = f"round {start.round}, {start.contender}"
    lines = [
        f"{head}, {rate.rate:g}/s: p50 {rounded(rate.append.get('p50_ms'))} ms, "
        f"p99 {rounded(rate.append.get('p99_ms'))} ms, {rate.audit}"
        + ("" if rate.keeps_up else f"; {rate.lag} decisions behind at the end")
        for rate in start.rates
    ]
    return [*lines, f"{head}: {start.error}"] if start.error else lines
