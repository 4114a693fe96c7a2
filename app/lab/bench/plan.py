"""What each start of a contender is put under."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from fraud_filter.errors import UsageError
from lab.bench.names import split

#: The generator sends at this share of the planned rate. At 100/s each payment would be due exactly 10 ms after the
#: one before, always at the same point within the millisecond, and Kafka's whole milliseconds would then be off by
#: the same amount for all of them. So the due times drift through the millisecond, and rounding averages out.
DRIFT = 0.997
#: Of the input topic.
MAX_PARTITIONS = 64
#: Measured at each rate but the lowest, at the most.
OTHERS_S = 10.0


@dataclass(frozen=True)
class Load:
    """The payments that a start gets. Times are in seconds, rates in payments per second, shares are parts of 1.

    `seconds` are measured at the lowest rate, at most `OTHERS_S` at the others, which have more payments; before each
    rate `settle_s` are left out, and `warmup_s` at `warmup_rate` once for each start. `fraud_share` is labelled fraud.
    `kill`: in the middle of each rate's seconds the contender is killed, and started again at once.
    `at_random`: payments arrive at random moments, not in even steps.
    For a user's query records are made by `schema`, payments without one, or come from the file `replay`, at each rate
    from its first on; none is malformed.

    Raises:
        UsageError: the shares are more than 1 together.
    """

    rates: tuple[float, ...] = (100, 1000, 5000)
    seconds: float = 60
    settle_s: float = 2
    warmup_s: float = 12
    warmup_rate: float = 5000
    partitions: int = 2
    flagged_share: float = 0.5
    malformed_share: float = 0.01
    fraud_share: float = 0
    seed: int = 1
    kill: bool = False
    schema: Path | None = None
    replay: Path | None = None
    at_random: bool = False

    def __post_init__(self) -> None:
        left = 1.0
        for name in ("flagged_share", "malformed_share", "fraud_share"):
            share = getattr(self, name)
            if share > left + 1e-9:
                raise UsageError(
                    f"argument --{name.replace('_', '-')}: {share:g} is not accepted: all shares together are at most "
                    f"1, which leaves {left:g}"
                )
            left -= share

    def seconds_at(self, rate: float) -> float:
        """The seconds that are measured at a rate."""
        return self.seconds if rate == min(self.rates) else min(self.seconds, OTHERS_S)


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
