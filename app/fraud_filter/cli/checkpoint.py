"""`fraud-filter checkpoint inspect` and `repair`: what a checkpoint holds, and how another mode can start from it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, cast, get_args

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import ModeName, Settings
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.text.terminal import printable

if TYPE_CHECKING:
    from fraud_filter.checkpoint.files import CheckpointFiles
    from fraud_filter.lock.checkpoint_lock import Lock

#: How the brokers that keep the lock are reached.
_KAFKA = (
    "kafka_bootstrap_servers", "kafka_timeout_s", "kafka_security_protocol", "kafka_sasl_mechanism",
    "kafka_sasl_username", "kafka_sasl_password_file", "kafka_oauth_token_url", "kafka_oauth_scope",
    "kafka_ssl_ca", "kafka_ssl_certificate", "kafka_ssl_key",
)  # fmt: skip


@click.group()
def command() -> None:
    """Look into the checkpoint of a Structured Streaming query, or make it startable in another mode.

    PATH is a path or a URI on any Hadoop file system; `--spark-conf` may hold its settings as spark.hadoop.*.
    """


@command.command()
@click.argument("path")
@click.option("--json", is_flag=True, hidden=True, expose_value=False, help="what is printed is JSON without it")
@settings_options("spark_conf")
def inspect(path: str, settings: Settings) -> None:
    """Say as JSON which offsets are committed, what is pending or broken, and which modes can start from it."""
    from fraud_filter.checkpoint.files import CheckpointError
    from fraud_filter.checkpoint.inspection import inspect_checkpoint

    with _opened(path, settings) as files:
        try:
            found = inspect_checkpoint(files, round(time.time() * 1000))
        except CheckpointError as error:
            raise UsageError(f"argument PATH: {error}") from None
    click.echo(json.dumps(found.to_dict(), indent=2))


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
@click.option("--unlocked", is_flag=True, help="take no lock in Kafka: where no filter can run on PATH meanwhile")
@settings_options("spark_conf", "checkpoint_lock_timeout_s", *_KAFKA)
def repair(path: str, mode: str, unlocked: bool, settings: Settings) -> None:
    """Make a checkpoint whose query is stopped startable in another mode; skips no record.

    What is not proven to be written is read again. The old logs stay in PATH, in the directory before-repair-<time>,
    until the next repair. `fraud-filter run` does all this by itself. Killed in between, call it again. It is refused
    while a filter runs on PATH, and a filter while it runs; where PATH is not on a local disk, Kafka keeps the lock.

    For sinks that remember batch numbers (files, tables) repair only to micro-batch or async-progress: they run a
    planned batch again as it was planned, as far as its entry can be read.
    """
    from py4j.protocol import Py4JError

    from fraud_filter.checkpoint.plan import UnrepairableError
    from fraud_filter.checkpoint.repair import repair as carry_out
    from fraud_filter.lock.checkpoint_lock import Lock, checkpoint_lock

    settings = settings.model_copy(update={"checkpoint": path})
    directory = settings.checkpoint_directory
    if directory is not None:
        _require_one(path, lambda name: (directory / name).exists())  # before there is a lock in it
    locked = checkpoint_lock(settings, "repair", named_by="argument PATH")
    with nullcontext(Lock()) if unlocked else locked as lock, _opened(path, settings, lock.descriptor) as files:
        _take(lock, files)
        try:
            done = carry_out(files, cast(ModeName, mode))
        except UnrepairableError as error:
            raise UsageError(f"argument PATH: {path} can't be repaired for {mode} mode: {error}") from None
        except Py4JError:
            if lock.lost:
                raise FraudFilterError(f"{lock.lost}; the checkpoint is intact: call it again") from None
            raise
    for reason in done.plan.reasons:
        click.echo(printable(reason))
    if done.kept_aside:
        click.echo(f"{mode} mode can start from it now; the old logs are in {path.rstrip('/')}/{done.kept_aside}")
    else:
        click.echo(f"nothing to repair: {mode} mode can start from it")


@contextmanager
def _opened(path: str, settings: Settings, keep_open: int | None = None) -> Iterator[CheckpointFiles]:
    from fraud_filter.checkpoint.files import CheckpointError, open_checkpoint

    with ExitStack() as stack:
        try:
            files = stack.enter_context(open_checkpoint(path, settings, keep_open))
            _require_one(path, files.exists)
        except CheckpointError as error:
            raise UsageError(f"argument PATH: {error}") from None
        yield files


def _require_one(path: str, exists: Callable[[str], bool]) -> None:
    if not any(exists(name) for name in ("metadata", "offsets", "commits")):
        raise UsageError(f"argument PATH: {path} is no checkpoint: it has neither metadata nor offsets nor commits")


def _take(lock: Lock, files: CheckpointFiles) -> None:
    from fraud_filter.checkpoint.files import CheckpointError

    try:
        lock.hold(files)
    except CheckpointError as error:
        raise FraudFilterError(f"{error}; where no filter can run on it, --unlocked repairs without a lock") from None
