"""What bench and experiments say of a start that has ended."""

from __future__ import annotations

from fraud_filter.pages.numbers import NOT_MEASURED
from lab.bench.results.lines import describe_start
from lab.bench.results.result import RateResult, StartResult
from lab.harness.outcome import Audited

_APPEND = {"p50_ms": 2.346, "p99_ms": 5.75}


def test_a_line_for_each_rate_and_one_for_the_end_before_its_time() -> None:
    kept = RateResult(100.0, 99.7, append=_APPEND, audit=Audited(0, 3, 0), payments=200, decisions=100)
    unknown = RateResult(1000.0)
    start = StartResult("linger_ms=5", 2, (kept, unknown), error="it ended with exit code 4")
    assert describe_start(start) == [
        "round 2, linger_ms=5, 100/s: p50 2.35 ms, p99 5.75 ms, 0 lost, 3 duplicated, 0 unexpected",
        "round 2, linger_ms=5, 1000/s: p50 ? ms, p99 ? ms, ? lost, ? duplicated, ? unexpected".replace(
            "?", NOT_MEASURED
        ),
        "round 2, linger_ms=5: it ended with exit code 4",
    ]


def test_what_fell_behind_is_told() -> None:
    behind = RateResult(5000.0, append=_APPEND, audit=Audited(0, 0, 0), lag=9000, behind_s=20)
    (line,) = describe_start(StartResult("floor", 1, (behind,)))
    assert line.endswith("0 unexpected; 9000 decisions behind at the end")
