"""The modes on a command line, and the settings that decide how fast each is."""

from __future__ import annotations

from typing import get_args

from fraud_filter.config import ModeName
from fraud_filter.errors import UsageError

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
    chosen: list[ModeName] = []
    for part in split(text):
        name = next((one for one in MODE_NAMES if one == part), None)
        if name is None:
            raise UsageError(f"argument --modes: {part!r} is not a mode: choose from {', '.join(MODE_NAMES)}")
        if name in chosen:
            raise UsageError(f"argument --modes: {part!r} is given twice: name each once")
        chosen.append(name)
    return tuple(chosen) or MODE_NAMES


def split(text: str) -> list[str]:
    """What stands between the commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
