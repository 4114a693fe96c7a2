"""The options of the verbs that put contenders under load: the fields of a `Load`, and how often it is done."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click


class Number(click.FloatRange):
    """A finite number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, within the range."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not accepted: give a number", param, ctx)
        return number


#: Parts of 1, and those that are not nothing.
SHARE, SOME = Number(0, 1), Number(0, 1, min_open=True)
PARTITIONS = click.IntRange(1, 64)
SEED = click.IntRange(0)
#: Fewer seconds are too few for percentiles.
_SECONDS = Number(3)
_OPTIONS = (
    click.option("--rates", default="100,1000,5000", show_default=True, metavar="N,N", help="payments per second"),
    click.option(
        "--seconds",
        type=_SECONDS,
        default=60.0,
        show_default=True,
        help="measured at the lowest rate; 10 at most at the others",
    ),
    click.option(
        "--rounds", type=click.IntRange(1, 64), default=3, show_default=True, help="how often each is started"
    ),
    click.option(
        "--settle", "settle_s", type=Number(0), default=2.0, show_default=True, help="seconds left out at each rate"
    ),
    click.option(
        "--warmup",
        "warmup_s",
        type=Number(0),
        default=12.0,
        show_default=True,
        help="seconds left out after each start",
    ),
    click.option(
        "--warmup-rate",
        type=Number(0, min_open=True),
        default=5000.0,
        show_default=True,
        help="payments per second while warming up",
    ),
    click.option("--partitions", type=PARTITIONS, default=2, show_default=True, help="partitions of the input topic"),
    click.option("--seed", type=SEED, default=1, show_default=True, help="seed of the payment generator"),
)


def load_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """All of them."""
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb
