"""`fraud-filter checkpoint inspect` and `repair`: what a checkpoint holds, and how another mode can start from it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast, get_args

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import ModeName, Settings
from fraud_filter.errors import UsageError
from fraud_filter.terminal import printable

if TYPE_CHECKING:
    from fraud_filter.checkpoint.files import CheckpointFiles


@click.group()
def command() -> None:
    """Look into the checkpoint of a Structured Streaming query, or make it startable in another mode.

    PATH is a path or a URI on any Hadoop file system; `--spark-conf` may hold its settings as spark.hadoop.*.
    """


@command.command()
@click.argument("path")
@click.option("--json", "as_json", is_flag=True, help="print JSON")
@settings_options("spark_conf")
def inspect(path: str, as_json: bool, settings: Settings) -> None:
    """Say which offsets are committed, what is pending or broken, and which modes can start from it."""
    from fraud_filter.checkpoint.reading import read_contents
    from fraud_filter.checkpoint.report import inspect_contents, print_inspection

    with _existing(path, settings) as files:
        found = inspect_contents(path, read_contents(files), round(time.time() * 1000))
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2))
    else:
        print_inspection(found)


@command.command()
@click.argument("path")
@click.option(
    "--to",
    "mode",
    type=click.Choice(get_args(ModeName)),
    default="micro-batch",
    show_default=True,
    help="the mode that is to start from it",
)
@settings_options("spark_conf")
def repair(path: str, mode: str, settings: Settings) -> None:
    """Make a checkpoint whose query is stopped startable in another mode; skips no record.

    What is not proven to be written is read again. The old logs stay in PATH, in the directory before-repair-<time>,
    until the next repair. `fraud-filter run` does all this by itself. Killed in between, call it again.

    For sinks that remember batch numbers (files, tables) repair only to micro-batch or async-progress: they run a
    planned batch again as it was planned, as far as its entry can be read.
    """
    from fraud_filter.checkpoint.plan import UnrepairableError
    from fraud_filter.checkpoint.repair import repair as carry_out

    with _existing(path, settings) as files:
        try:
            done = carry_out(files, cast(ModeName, mode))
        except UnrepairableError as error:
            raise UsageError(f"argument PATH: {path} can't be repaired for {mode} mode: {error}") from None
    for reason in done.plan.reasons:
        click.echo(printable(reason))
    if done.kept_aside:
        click.echo(f"{mode} mode can start from it now; the old logs are in {path.rstrip('/')}/{done.kept_aside}")
    else:
        click.echo(f"nothing to repair: {mode} mode can start from it")


@contextmanager
def _existing(path: str, settings: Settings) -> Iterator[CheckpointFiles]:
    from fraud_filter.checkpoint.java import open_checkpoint

    with open_checkpoint(path, settings) as files:
        if not any(files.exists(name) for name in ("metadata", "offsets", "commits")):
            raise UsageError(f"argument PATH: {path} is no checkpoint: it has neither metadata nor offsets nor commits")
        yield files
