"""`fraud-filter generate`: its arguments, and what they make together."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fraud_filter.cli.options import settings_options
from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_FAILED, EXIT_OK, UsageError
from fraud_filter.stop_signals import stop_event

if TYPE_CHECKING:
    from fraud_filter.generator.sender import Sender
    from fraud_filter.generator.source import Pace, Source

_FILE = click.Path(path_type=Path)


def _number(name: str, unit: str, meaning: str, default: float | None = None) -> Callable[..., Any]:
    return click.option(name, type=float, metavar=unit, default=default, show_default=default is not None, help=meaning)


@click.command()
@_number("--rate", "N", "records per second", 100)
@click.option("--at-random", is_flag=True, help="records at random moments (a Poisson process), not in even steps")
@click.option("--count", type=int, metavar="N", help="stop after N records")
@_number("--seconds", "S", "stop after S seconds")
@_number("--flagged-share", "X", "share that matches a shipped rule", 0.05)
@_number("--malformed-share", "X", "share that is no valid record", 0.001)
@_number("--fraud-share", "X", "share of fraud, labelled in a header", 0)
@click.option("--seed", type=int, metavar="N", help="same seed, same records  [random]")
@click.option("--replay", type=_FILE, metavar="FILE", help="send this CSV, JSON lines or Parquet file")
@click.option("--select", metavar="SQL|FILE", help="replay: DuckDB SELECT FROM file; or paysim, sparkov")
@_number("--speed", "X", "replay: multiple of the recorded pace", 1)
@click.option("--metrics-port", type=click.IntRange(0, 65535), default=0, help="port of /metrics; 0 serves none  [0]")
@click.option("--json", "as_json", is_flag=True, help="print the report as JSON")
@settings_options(
    *("kafka_bootstrap_servers", "input_topic", "payment_schema", "record_format", "rules", "kafka_timeout_s"),
    "metrics_host",
)
def command(
    settings: Settings,
    count: int | None,
    seconds: float | None,
    metrics_port: int,
    as_json: bool,
    **arguments: Any,
) -> int:
    """Write records to Kafka at a set rate, made up or replayed from a file.

    It goes on until --count, --seconds or the end of the file, or until it is stopped (Ctrl-C, SIGTERM), and
    then reports the rate that it really kept. Records are sent when they are due, slow as the broker may be.
    The exit code is 1 when a record was not delivered.
    """
    from fraud_filter.generator.sender import Sender

    with stop_event() as stop:
        make_source = _made if arguments["replay"] is None else _replayed
        source = make_source(settings, arguments)
        sender = Sender(settings, source, count=count, seconds=seconds)
        click.echo(f"writing to {settings.input_topic} at {settings.kafka_bootstrap_servers}", err=True)
        with _served(settings.metrics_host, metrics_port, sender):
            result = sender.run(stop)
        click.echo(result.json() if as_json else result.text())
    return EXIT_FAILED if result.failed else EXIT_OK


@contextmanager
def _served(host: str, port: int, sender: Sender) -> Iterator[None]:
    """Serves /metrics meanwhile, where a port is set."""
    from fraud_filter.generator.sender import GeneratorMetrics
    from fraud_filter.metrics.server import MetricsServer, Registry

    if not port:
        yield
        return
    registry = Registry()
    GeneratorMetrics(registry, sender.tally)
    server = MetricsServer(registry, host, port, "metrics_port")
    try:
        yield
    finally:
        server.stop()


def _made(settings: Settings, given: dict[str, Any]) -> Source:
    from fraud_filter.generator.payments import Shares, made_source
    from fraud_filter.generator.records import MadeRecords

    _refuse(("select", "speed"), "goes with --replay only")
    shares = Shares(given["flagged_share"], given["malformed_share"], given["fraud_share"])
    seed = secrets.randbits(32) if given["seed"] is None else given["seed"]
    source = made_source(settings, _pace(given, seed), seed=seed, shares=shares)
    if isinstance(source, MadeRecords):
        of = f"is for payments: {settings.payment_schema} requires other fields, which are made up by type"
        _refuse(("flagged_share", "fraud_share"), of)
    return source


def _replayed(settings: Settings, given: dict[str, Any]) -> Source:
    from fraud_filter.generator.replay import Replay
    from fraud_filter.schema import load_schema

    _refuse(("flagged_share", "malformed_share", "fraud_share", "seed"), "is for made-up payments, not for --replay")
    own_pace = any(map(_is_given, ("rate", "at_random")))
    if own_pace:
        _refuse(("speed",), "is a multiple of the recorded pace: leave out --rate")
    pace = _pace(given, seed=0)
    return Replay(
        given["replay"],
        load_schema(settings.payment_schema),
        select=given["select"],
        pace=pace if own_pace else None,
        speed=given["speed"],
    )


def _pace(given: dict[str, Any], seed: int) -> Pace:
    from fraud_filter.generator.source import AtRandom, Steady

    return AtRandom(given["rate"], seed) if given["at_random"] else Steady(given["rate"])


def _is_given(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def _refuse(names: tuple[str, ...], why: str) -> None:
    for name in filter(_is_given, names):
        raise UsageError(f"--{name.replace('_', '-')} {click.get_current_context().params[name]} {why}")
