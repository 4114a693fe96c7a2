"""What happened to the filter: moved to another mode, restarted, gone; told from its series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fraud_filter.report.prometheus import Series
from fraud_filter.report.window import format_duration


@dataclass(frozen=True)
class Event:
    """Something that happened at `at`, in seconds since 1970, or up to a step of the curves before it."""

    at: float
    kind: str
    text: str


@dataclass(frozen=True)
class Span:
    """A mode and the time that there is data of it, in seconds since 1970."""

    mode: str
    start: float
    end: float


def find_spans(up: Sequence[Series], longest_gap_s: float) -> list[Span]:
    """The stretches of time that each mode ran, from `fraud_filter_up` by mode; a gap ends a stretch.

    For a moment there may be data of two modes: the old series of a moved filter lives on until its next scrape. The
    mode that begins later is the one that counts.
    """
    stretches: list[Span] = []
    for series in up:
        mode = series.labels.get("mode", "")
        times = [time for time, _ in series.points]
        starts = times[:1] + [now for before, now in pairwise(times) if now - before > longest_gap_s]
        ends = [before for before, now in pairwise(times) if now - before > longest_gap_s] + times[-1:]
        stretches += [Span(mode, *pair) for pair in zip(starts, ends, strict=True)]
    stretches.sort(key=lambda span: (span.start, span.end))
    pieces = (piece for at, span in enumerate(stretches) for piece in _without(span, stretches[at + 1 :]))
    return sorted(pieces, key=lambda span: (span.start, span.end))


def _without(span: Span, later: Sequence[Span]) -> Iterator[Span]:
    """What is left of a stretch where others, which begin later, are taken out: several pieces, or none."""
    start = span.start
    for other in later:
        if other.start < span.end:
            if start < other.start:
                yield Span(span.mode, start, other.start)
            start = max(start, other.end)
    if start < span.end or (span.start == span.end == start):
        yield Span(span.mode, start, span.end)


def find_events(
    spans: Sequence[Span], up: Sequence[Series], restarts: Sequence[Series], commits: Sequence[Series], gap_s: float
) -> list[Event]:
    """What happened, oldest first. All series are by mode; `gap_s` seconds without data are a gap.

    `up` is 1 while the query is active. `restarts` counts what the program restarted by itself. A program that began
    again shows in its counters, which then start at 0: `commits` is such a counter.
    """
    found = [*_changes(spans, gap_s)]
    for before, now, at in _steps(up):
        if (now > 0) != (before > 0):
            found.append(Event(at, *(("active", "query active") if now > 0 else ("inactive", "query not active"))))
    for before, now, at in _steps(restarts):
        if now > before:
            times = "" if now - before == 1 else f" {now - before:g} times"
            found.append(Event(at, "restarted", f"query restarted{times} after a failure"))
    for before, now, at in _steps(commits):
        if now < before:
            found.append(Event(at, "started", "filter restarted: its counters begin at 0"))
    return sorted(found, key=lambda event: event.at)


def _changes(spans: Sequence[Span], gap_s: float) -> Iterator[Event]:
    for before, now in pairwise(spans):
        pause = now.start - before.end
        if before.mode != now.mode:
            yield Event(now.start, "switched", f"mode switched from {before.mode} to {now.mode}")
        elif pause > gap_s:
            yield Event(now.start, "gap", f"data again, after {format_duration(pause)} without any")


def _steps(series: Sequence[Series]) -> Iterator[tuple[float, float, float]]:
    """Value before, value now, and time, for each two points that follow each other."""
    for one in series:
        for (_, before), (at, now) in pairwise(one.points):
            yield before, now, at
