"""What a run says of a start that has ended."""

from __future__ import annotations

from lab.bench.results.result import RateResult, StartResult
from lab.bench.results.table import rounded


def describe_start(start: StartResult) -> list[str]:
    """A line for each rate that was measured, and one for what ended the start before its time."""
    head = f"round {start.round}, {start.contender}"
    lines = [
        f"{head}, {rate.rate:g}/s: p50 {rounded(rate.append.get('p50_ms'))} ms, "
        f"p99 {rounded(rate.append.get('p99_ms'))} ms, {rate.audit}{_shortfall(rate)}"
        for rate in start.rates
    ]
    return [*lines, f"{head}: {start.error}"] if start.error else lines


def _shortfall(rate: RateResult) -> str:
    if rate.is_behind:
        return f"; {rate.lag} decisions behind at the end"
    if rate.keeps_up or rate.kept_rate is None:
        return ""
    return f"; only {rounded(rate.kept_rate)} of {rate.rate:g} payments/s came"
