"""Options that several verbs have: what contenders are put under, and where results go."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from fraud_filter.errors import FraudFilterError, UsageError
from lab.harness.tables import find_place


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
    click.option(
        "--flagged-share", type=SOME, default=0.5, show_default=True, help="share made to match a rule, 0 to 1"
    ),
    click.option(
        "--at-random", is_flag=True, help="payments arrive at moments of their own (Poisson), in place of even steps"
    ),
    click.option("--partitions", type=PARTITIONS, default=2, show_default=True, help="partitions of the input topic"),
    click.option("--seed", type=SEED, default=1, show_default=True, help="seed of the payment generator"),
)


def rate_option(default: float, what: str = "records per second") -> Callable[..., Any]:
    """`--rate`: a number above 0, in `what`."""
    return click.option("--rate", type=Number(0, min_open=True), default=default, show_default=True, help=what)


def load_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The fields of a `Load`, and how often each contender is started."""
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb


def docs_option(example: str, name: str) -> Callable[..., Any]:
    """`--docs FILE`: a Markdown file with a place of that `name` for the table of results, such as `example`."""

    def require_place(_: click.Context, option: click.Parameter, file: Path | None) -> Path | None:
        if file:
            try:
                find_place(file, name)
            except FraudFilterError as error:
                raise UsageError(f"argument {option.opts[0]}: {error}") from None
        return file

    return click.option(
        "--docs",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        callback=require_place,
        help=f"also write the table between the markers in this Markdown file, such as {example}",
    )
