"""The contenders' names, and which of them are compared. Knows nothing of how they run."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar, get_args

from fraud_filter.config import ModeName
from fraud_filter.errors import UsageError

_Name = TypeVar("_Name", bound=str)

#: From the slowest to the fastest.
MODE_NAMES: tuple[ModeName, ...] = get_args(ModeName)
SINGLE = "continuous-single"
FLOOR = "floor"
FLINK = "flink"
VELOCITY = "velocity"
FLINK_VELOCITY = "flink-velocity"
MODEL = "model"

#: All contenders, in the order in which they are shown, with a word on each.
CONTENDERS: dict[str, str] = {
    "micro-batch": "the filter in micro-batch mode",
    "async-progress": "the filter in micro-batch mode with asynchronous progress tracking",
    "continuous": "the filter in continuous mode",
    SINGLE: "the filter in continuous mode, one record a poll: for up to 1,000 payments/s a partition",
    "real-time": "the filter in real-time mode",
    FLOOR: "a plain loop on librdkafka: consume, decide, produce",
    FLINK: "Apache Flink, one SQL statement",
    VELOCITY: "the filter in real-time mode with three exact velocity windows of a card",
    FLINK_VELOCITY: "Apache Flink with the same three windows, in processing time",
    MODEL: "the filter in real-time mode with a model of 50 boosted trees",
}

#: Pairs whose latencies are set against each other, the first divided by the second.
RATIOS: tuple[tuple[str, str], ...] = (
    ("real-time", FLOOR),
    ("continuous", FLOOR),
    (SINGLE, FLOOR),
    ("real-time", FLINK),
    (VELOCITY, FLINK_VELOCITY),
    (VELOCITY, "real-time"),
    (MODEL, "real-time"),
    ("micro-batch", "continuous"),
    ("micro-batch", "async-progress"),
)


def parse_modes(text: str) -> tuple[ModeName, ...]:
    """The modes named in `text`, separated by commas, in its order; an empty text means all of them.

    Raises:
        UsageError: a name is not a mode, or is given twice.
    """
    return parse_names(text, MODE_NAMES, "--modes", "a mode") or MODE_NAMES


def parse_names(text: str, known: Collection[_Name], argument: str, what: str) -> tuple[_Name, ...]:
    """The names in `text`, separated by commas, in its order.

    Raises:
        UsageError: a name is not known, or is given twice.
    """
    chosen: list[_Name] = []
    for part in split(text):
        name = next((one for one in known if one == part), None)
        if name is None:
            raise UsageError(f"argument {argument}: {part!r} is not {what}: choose from {', '.join(known)}")
        if name in chosen:
            raise UsageError(f"argument {argument}: {part!r} is given twice: name each once")
        chosen.append(name)
    return tuple(chosen)


def parse_kinds(text: str, known: tuple[_Name, ...], argument: str, what: str) -> list[_Name]:
    """The names in `text`, one at least, in the order of `known`.

    Raises:
        UsageError: a name is not known, or is given twice; none is given.
    """
    named = parse_names(text, known, argument, what)
    if not named:
        raise UsageError(f"argument {argument}: {text!r} names none: choose from {', '.join(known)}")
    return [kind for kind in known if kind in named]


def split(text: str) -> list[str]:
    """What stands between the commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
