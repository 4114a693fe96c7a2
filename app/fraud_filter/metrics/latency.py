"""One second of a measurement of latencies."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Second:
    """One second of a measurement: `second` counts from 1; latencies are None when nothing came out."""

    second: int
    decisions: int
    p50_ms: float | None
    max_ms: float | None
