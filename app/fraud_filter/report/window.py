"""The stretch of time that a report covers, and how durations are read and written."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from fraud_filter.errors import UsageError

#: Seconds in the units that Prometheus uses as well (Prometheus docs, "Time Durations").
_UNIT_S = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}
_DURATION = re.compile("".join(rf"(?:(?P<{unit}>\d+){unit})?" for unit in _UNIT_S))
#: Points of a curve, about: more than can be told apart in a plot are of no use.
_POINTS = 240
#: Scrapes that a rate is taken over: two give one, and now and then one is late or missed.
_SCRAPES = 4
_LONGEST_S = 366 * _UNIT_S["d"]


@dataclass(frozen=True)
class Window:
    """From `start` to `end`, in seconds since 1970. `scrape_s` are the seconds between two samples."""

    start: float
    end: float
    scrape_s: float = 1.0

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end - self.start

    @property
    def step_s(self) -> int:
        """Whole seconds from one point of a curve to the next."""
        return max(1, math.ceil(self.scrape_s), math.ceil(self.seconds / _POINTS))

    @property
    def is_coarse(self) -> bool:
        """Whether there are more samples than points of a curve, so that points don't tell all that was counted."""
        return self.step_s > math.ceil(self.scrape_s)

    @property
    def rate_s(self) -> int:
        """Whole seconds that each point of a rate looks back: no sample between two points is left out."""
        return max(self.step_s, math.ceil(self.scrape_s * _SCRAPES))


def parse_since(text: str) -> int:
    """The seconds of a duration such as 90s, 10m, 2h, 1h30m or 7d.

    Raises:
        UsageError: it is no such duration, or not between one second and a year.
    """
    match = _DURATION.fullmatch(text.strip())
    seconds = sum(int(match[unit] or 0) * length for unit, length in _UNIT_S.items()) if match else 0
    if not 1 <= seconds <= _LONGEST_S:
        raise UsageError(
            f"argument --since: {text!r} is not accepted: give a duration of one second to a year, "
            "such as 90s, 10m, 1h30m or 7d"
        )
    return seconds


def format_duration(seconds: float) -> str:
    """A duration in the same form, in whole seconds: 5400 is 1h30m."""
    left, text = round(seconds), ""
    for unit, length in _UNIT_S.items():
        count, left = divmod(left, length)
        text += f"{count}{unit}" if count else ""
    return text or "0s"
