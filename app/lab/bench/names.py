"""Names on a command line: of modes, contenders and other things that are chosen by name."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar, get_args

from fraud_filter.config import ModeName
from fraud_filter.errors import UsageError

_Name = TypeVar("_Name", bound=str)

#: From the slowest to the fastest.
MODE_NAMES: tuple[ModeName, ...] = get_args(ModeName)
#: The settings that decide how fast a mode is: options of what measures modes, and part of its report.
KNOBS = (
    "micro_batch_interval",
    "async_progress_interval_ms",
    "continuous_interval",
    "continuous_fetch_max_wait_ms",
    "continuous_max_poll_records",
    "real_time_duration",
    "linger_ms",
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


def split(text: str) -> list[str]:
    """What stands between the commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
