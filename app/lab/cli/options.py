"""Options that several verbs have: what contenders are put under, and where results go."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from fraud_filter.errors import FraudFilterError, UsageError
from lab.harness.tables import find_place

#: An option whose default --help shows.
default_option = partial(click.option, show_default=True)


class Number(click.FloatRange):
    """A finite number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, within the range."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not accepted: give a number", param, ctx)
        return number


#: By name of an argument: type, default and help. Fewer than 3 seconds are too few for percentiles.
_OPTIONS: Mapping[str, tuple[Any, Any, str]] = {
    "rates": (str, "100,1000,5000", "payments per second, separated by commas"),
    "seconds": (Number(3), 60.0, "measured at the lowest rate; 10 at most at the others"),
    "rounds": (click.IntRange(1, 64), 3, "how often each is started"),
    "settle": (Number(0), 2.0, "seconds left out at each rate"),
    "warmup": (Number(0), 12.0, "seconds left out after each start"),
    "warmup_rate": (Number(0, min_open=True), 5000.0, "payments per second while warming up"),
    "flagged_share": (Number(0, 1, min_open=True), 0.5, "share made to match a rule, 0 to 1"),
    "partitions": (click.IntRange(1, 64), 2, "partitions of the input topic"),
    "seed": (click.IntRange(0), 1, "seed of the payment generator"),
}


def rate_option(default: float) -> Callable[..., Any]:
    """`--rate`: a number above 0."""
    return default_option("--rate", type=Number(0, min_open=True), default=default, help="records per second")


def output_option(what: str) -> Callable[..., Any]:
    """`--output`: the directory that takes what a verb writes."""
    kind, words = click.Path(path_type=Path), f"where {what} go  [.]"
    return click.option("--output", default=Path(), type=kind, metavar="DIR", help=words)


def check_directory(directory: Path) -> None:
    """Makes the directory of `--output` where it is missing, and proves that it can be written to.

    Raises:
        UsageError: it can't be made or written to.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise UsageError(
            f"argument --output: {str(directory)!r} can't be written to ({error.strerror}): give another"
        ) from None


def load_options(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The named fields of a `Load`, all without names; and how often each contender is started."""

    def decorate(verb: Callable[..., Any]) -> Callable[..., Any]:
        for name in reversed(names or tuple(_OPTIONS)):
            kind, default, words = _OPTIONS[name]
            flag, argument = f"--{name.replace('_', '-')}", f"{name}_s" if name in ("settle", "warmup") else name
            verb = default_option(flag, argument, type=kind, default=default, help=words)(verb)
        return verb

    return decorate


def docs_option(example: str) -> Callable[..., Any]:
    """`--docs FILE`: a Markdown file with a place for the table of results, such as `example`."""
    return click.option(
        "--docs",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"also write the table between the markers in this Markdown file, such as {example}",
    )


def require_place(docs: Path | None, name: str) -> None:
    """Refuses, before anything runs, a file without a place of that `name`; None is no file.

    Raises:
        UsageError: it has none.
    """
    if docs:
        try:
            find_place(docs, name)
        except FraudFilterError as error:
            raise UsageError(f"argument --docs: {error}") from None
