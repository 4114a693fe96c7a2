"""What one bench is to do: the arguments of `fraud-filter lab bench`, checked before anything is started."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from fraud_filter.errors import UsageError
from lab.bench.names import split

#: The generator sends at this share of the planned rate. At 100/s each payment would be due exactly 10 ms after the
#: one before, always at the same point within the millisecond, and Kafka's whole milliseconds would then be off by
#: the same amount for all of them. So the due times drift through the millisecond, and rounding averages out.
DRIFT = 0.997
#: Of the input topic; a round has no more either.
MAX_PARTITIONS = 64
#: Measured at each rate but the lowest, at the most.
OTHERS_S = 10.0
#: Of one start; a machine that is still busy by then stays busy.
MOST_REPEATS = 10
_FLAGGED = "a share above 0 and up to 1 (latency is measured on flagged payments)"

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class BenchPlan:
    """One bench. Times are in seconds, rates in payments per second, shares are parts of 1.

    `seconds` are measured at the lowest rate of each round, at most `OTHERS_S` at the others, which have more payments;
    before each rate `settle_s` are left out, and `warmup_s` at `warmup_rate` once for each start of a contender.
    `fraud_share` of the payments is labelled fraud. `awake` keeps the cores from sleeping (Linux). A start is repeated
    up to `repeats` times when others took the processor meanwhile.

    Raises:
        UsageError: a value is not accepted; the message names the argument, the value and what to give.
    """

    contenders: tuple[str, ...]
    rates: tuple[float, ...] = (100, 1000, 5000)
    rounds: int = 3
    seconds: float = 60
    settle_s: float = 2
    warmup_s: float = 12
    warmup_rate: float = 5000
    partitions: int = 2
    flagged_share: float = 0.5
    malformed_share: float = 0.01
    fraud_share: float = 0
    seed: int = 1
    repeats: int = 2
    awake: bool = False
    output: Path = Path()

    def __post_init__(self) -> None:
        shares, whole = self.flagged_share + self.malformed_share, "a whole number from"
        left = 1 - min(shares, 1)
        for name, value, is_right, what in (
            ("seconds", self.seconds, self.seconds > 0, "a number above 0"),
            ("warmup-rate", self.warmup_rate, self.warmup_rate > 0, "a number above 0"),
            ("warmup", self.warmup_s, self.warmup_s >= 0, "0 or more seconds"),
            ("settle", self.settle_s, self.settle_s >= 0, "0 or more seconds"),
            ("rounds", self.rounds, 1 <= self.rounds <= MAX_PARTITIONS, f"{whole} 1 to {MAX_PARTITIONS}"),
            ("partitions", self.partitions, 1 <= self.partitions <= MAX_PARTITIONS, f"{whole} 1 to {MAX_PARTITIONS}"),
            ("repeats", self.repeats, 0 <= self.repeats <= MOST_REPEATS, f"{whole} 0 to {MOST_REPEATS}"),
            ("seed", self.seed, self.seed >= 0, "a whole number, 0 or more"),
            ("flagged-share", self.flagged_share, 0 < self.flagged_share <= 1, _FLAGGED),
            (
                "malformed-share",
                self.malformed_share,
                self.malformed_share >= 0 and shares <= 1,
                f"a share from 0 to {1 - self.flagged_share:g}, for it and --flagged-share together are at most 1",
            ),
            (
                "fraud-share",
                self.fraud_share,
                0 <= self.fraud_share <= left,
                f"a share from 0 to {left:g}",
            ),
        ):
            if not (math.isfinite(value) and is_right):
                raise UsageError(f"argument --{name}: {value:.15g} is not accepted: give {what}")

    def within(self, most: float) -> BenchPlan:
        """The same plan without the rates above `most` payments per second, and with a warm-up that is not, either."""
        rates = tuple(rate for rate in self.rates if rate <= most)
        return replace(self, rates=rates, warmup_rate=min(self.warmup_rate, most))

    def seconds_at(self, rate: float) -> float:
        """The seconds that are measured at a rate."""
        return self.seconds if rate == min(self.rates) else min(self.seconds, OTHERS_S)


def in_rounds(items: Sequence[_Item], rounds: int) -> Iterator[tuple[int, _Item]]:
    """Each item once a round, with the number of the round (from 1); each round begins with another one."""
    for number in range(1, rounds + 1):
        first = (number - 1) % len(items)
        for item in (*items[first:], *items[:first]):
            yield number, item


def parse_rates(text: str) -> tuple[float, ...]:
    """The rates in `text`, payments per second separated by commas, in ascending order.

    Raises:
        UsageError: one is no number above 0, or above the generator's limit, or given twice; or there is none.
    """
    rates: list[float] = []
    for part in split(text):
        try:
            rate = float(part)
        except ValueError:
            rate = math.nan
        if not 0 < rate <= 1_000_000 or rate in rates:
            raise UsageError(
                f"argument --rates: {part!r} is not accepted: give different numbers of payments per second, above 0, "
                "at most 1000000, such as 100,1000"
            )
        rates.append(rate)
    if not rates:
        raise UsageError("argument --rates: give at least one number of payments per second, such as 100")
    return tuple(sorted(rates))
