"""What one demo is to do: the arguments of `fraud-filter demo`, checked before anything is started."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from fraud_filter.config import ModeName
from fraud_filter.errors import UsageError
from fraud_filter.text.outputs import check_directory

#: All modes, from the slowest to the fastest.
ALL_MODES: tuple[ModeName, ...] = get_args(ModeName)

MOST_PARTITIONS = 64


@dataclass(frozen=True)
class DemoPlan:
    """One demo. Times are in seconds, `rate` in payments per second, shares are parts of 1.

    Raises:
        UsageError: a value is not accepted; the message names the argument, the value and what to give.
    """

    modes: tuple[ModeName, ...] = ALL_MODES
    seconds: float = 30
    rate: float = 100
    warmup_s: float = 12
    partitions: int = 2
    flagged_share: float = 0.5
    malformed_share: float = 0.01
    seed: int = 1
    output: Path = Path()
    png: Path | None = None

    def __post_init__(self) -> None:
        for name, value in (("seconds", self.seconds), ("rate", self.rate)):
            if not (math.isfinite(value) and value > 0):
                raise UsageError(f"argument --{name}: {value:g} is not accepted: give a number above 0")
        if not (math.isfinite(self.warmup_s) and self.warmup_s >= 0):
            raise UsageError(f"argument --warmup: {self.warmup_s:g} is not accepted: give 0 or more seconds")
        if not 1 <= self.partitions <= MOST_PARTITIONS:
            raise UsageError(f"argument --partitions: {self.partitions} is not accepted: give 1 to {MOST_PARTITIONS}")
        if self.seed < 0:
            raise UsageError(f"argument --seed: {self.seed} is not accepted: give a whole number, 0 or more")
        self._check_shares()

    def _check_shares(self) -> None:
        if not 0 < self.flagged_share <= 1:
            raise UsageError(
                f"argument --flagged-share: {self.flagged_share:g} is not accepted: give a share above 0 and "
                "up to 1 (latency is measured on flagged payments)"
            )
        if self.malformed_share < 0 or self.flagged_share + self.malformed_share > 1:
            raise UsageError(
                f"argument --malformed-share: {self.malformed_share:g} is not accepted: give a share from 0 "
                f"to {1 - self.flagged_share:g}, for it and --flagged-share together are at most 1"
            )


def parse_modes(text: str) -> tuple[ModeName, ...]:
    """The modes named in `text`, separated by commas, in its order; an empty text means all of them.

    Raises:
        UsageError: a name is not a mode, or is given twice.
    """
    chosen: list[ModeName] = []
    for name in filter(None, (part.strip() for part in text.split(","))):
        mode = next((known for known in ALL_MODES if known == name), None)
        if mode is None:
            raise UsageError(f"argument --modes: {name!r} is not a mode: choose from {', '.join(ALL_MODES)}")
        if mode in chosen:
            raise UsageError(f"argument --modes: {name!r} is given twice: name each mode once")
        chosen.append(mode)
    return tuple(chosen) or ALL_MODES


def check_outputs(plan: DemoPlan) -> None:
    """Makes the output directory where it is missing, and proves that the report's files can be written.

    Raises:
        UsageError: a directory can't be made or written to, or `--png` does not name a PNG file.
    """
    check_directory("--output", plan.output)
    if plan.png is None:
        return
    if plan.png.suffix.lower() != ".png" or plan.png.is_dir():
        raise UsageError(f"argument --png: {str(plan.png)!r} is not accepted: give a file name that ends in .png")
    check_directory("--png", plan.png.parent)
