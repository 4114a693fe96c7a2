"""What happened to the filter: moved to another mode, restarted, gone; told from its series."""

from __future__ import annotations

from collections.abc import Sequence
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
    followers: list[Span | None] = [*stretches[1:], None]
    return [
        Span(span.mode, span.start, min(span.end, later.start) if later else span.end)
        for span, later in zip(stretches, followers, strict=True)
    ]


def find_events(
    spans: Sequence[Span], restarts: Sequence[Series], commits: Sequence[Series], gap_s: float
) -> list[Event]:
    """What happened, oldest first. `gap_s` are the seconds without data after which the filter counts as gone.

    `restarts` counts what the program restarted by itself. A program that began anew shows in its counters, which then
    start at 0: `commits` is such a counter, told by mode.
    """
    events = []
    for before, now in pairwise(spans):
        pause = now.start - before.end
        if before.mode != now.mode:
            events.append(Event(now.start, "switched", f"mode switched from {before.mode} to {now.mode}"))
        elif pause > gap_s:
            events.append(Event(now.start, "gap", f"data again, after {format_duration(pause)} without any"))
    for series in restarts:
        for (_, before_count), (at, count) in pairwise(series.points):
            if count > before_count:
                times = "" if count - before_count == 1 else f" {count - before_count:g} times"
                events.append(Event(at, "restarted", f"query restarted{times} after a failure"))
    for series in commits:
        for (_, before_count), (at, count) in pairwise(series.points):
            if count < before_count:
                events.append(Event(at, "started", "filter started anew: its counters begin at 0"))
    return sorted(events, key=lambda event: event.at)
