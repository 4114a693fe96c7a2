"""The options of the verbs that put contenders under load: the fields of a `BenchPlan`, but for who runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from fraud_filter.errors import UsageError

#: Fewer are too few for percentiles.
_LEAST_S = 3
_SECONDS = "measured at the lowest rate; 10 at most at the others"
_OPTIONS = (
    click.option("--rounds", default=3, show_default=True, help="how often each is started"),
    click.option("--settle", "settle_s", default=2.0, show_default=True, help="seconds left out at each rate"),
    click.option("--warmup", "warmup_s", default=12.0, show_default=True, help="seconds left out after each start"),
    click.option("--warmup-rate", default=5000.0, show_default=True, help="payments per second while warming up"),
    click.option("--partitions", default=2, show_default=True, help="partitions of the input topic"),
    click.option("--seed", default=1, show_default=True, help="seed of the payment generator"),
    click.option(
        "--repeats", default=2, show_default=True, help="how often a start may be repeated that others disturbed"
    ),
    click.option("--awake/--no-awake", show_default=True, help="keep the cores from sleeping meanwhile; Linux only"),
)


def load_options(rates: str, seconds: float) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--rates`, which comes as text, and `--seconds`, with these defaults; the other fields under their names."""
    first = (
        click.option("--rates", default=rates, show_default=True, metavar="N,N", help="payments per second"),
        click.option("--seconds", default=float(seconds), show_default=True, callback=_require_enough, help=_SECONDS),
    )

    def decorate(verb: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed((*first, *_OPTIONS)):
            verb = option(verb)
        return verb

    return decorate


def _require_enough(_: click.Context, __: click.Parameter, seconds: float) -> float:
    if not seconds >= _LEAST_S:
        raise UsageError(f"argument --seconds: {seconds:g} is not accepted: give {_LEAST_S} or more")
    return seconds
