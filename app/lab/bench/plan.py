"""What one bench is to do: the arguments of `fraud-filter bench`, checked before anything is started."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

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
#: Of one start; a machine that is not to be had by then is busy for good.
MOST_REPEATS = 10


@dataclass(frozen=True)
class BenchPlan:
    """One bench. Times are in seconds, rates in payments per second, shares are parts of 1.

    `seconds` are measured at the lowest rate of each round, at most `OTHERS_S` at the others, which have more payments;
    before each rate `settle_s` are left out, and `warmup_s` at `warmup_rate` once for each start of a contender.
    `awake` keeps the cores from sleeping (Linux). A start is repeated up to `repeats` times when others took the
    processor meanwhile.

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
    seed: int = 1
    repeats: int = 2
    awake: bool = False
    output: Path = Path()

    def __post_init__(self) -> None:
        above_zero = (("seconds", self.seconds), ("warmup-rate", self.warmup_rate))
        for name, value in above_zero:
            if not (math.isfinite(value) and value > 0):
                raise UsageError(f"argument --{name}: {value:g} is not accepted: give a number above 0")
        for name, value in (("warmup", self.warmup_s), ("settle", self.settle_s)):
            if not (math.isfinite(value) and value >= 0):
                raise UsageError(f"argument --{name}: {value:g} is not accepted: give 0 or more seconds")
        for name, count in (("rounds", self.rounds), ("partitions", self.partitions)):
            if not 1 <= count <= MAX_PARTITIONS:
                raise UsageError(
                    f"argument --{name}: {count} is not accepted: give a whole number from 1 to {MAX_PARTITIONS}"
                )
        if not 0 <= self.repeats <= MOST_REPEATS:
            raise UsageError(
                f"argument --repeats: {self.repeats} is not accepted: give a whole number from 0 to {MOST_REPEATS}"
            )
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

    def within(self, most: float) -> BenchPlan:
        """The same plan without the rates above `most` payments per second, and with a warm-up that is not, either."""
        rates = tuple(rate for rate in self.rates if rate <= most)
        return replace(self, rates=rates, warmup_rate=min(self.warmup_rate, most))

    def seconds_at(self, rate: float) -> float:
        """The seconds that are measured at a rate."""
        return self.seconds if rate == min(self.rates) else min(self.seconds, OTHERS_S)

    def order(self, number: int) -> tuple[str, ...]:
        """The contenders in the order of round `number` (from 1): each round begins with another one."""
        first = (number - 1) % len(self.contenders)
        return self.contenders[first:] + self.contenders[:first]


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
