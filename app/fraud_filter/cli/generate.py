"""`fraud-filter generate`: its arguments, and what they make together."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_FAILED, EXIT_OK, UsageError
from fraud_filter.stop_signals import stop_event

if TYPE_CHECKING:
    from fraud_filter.generator.pace import Pace
    from fraud_filter.generator.sender import Sender
    from fraud_filter.generator.source import Source

T = TypeVar("T")

_RATE, _FLAGGED_SHARE, _MALFORMED_SHARE, _FRAUD_SHARE = 100.0, 0.05, 0.001, 0.0
_BURST_EVERY_S, _BURST_LENGTH_S, _BURST_FACTOR = 10.0, 1.0, 10.0

_RAMP_ARGUMENTS = ("ramp_to", "ramp_seconds")
_BURST_ARGUMENTS = ("burst_rate", "burst_every", "burst_length")

_FILE = click.Path(path_type=Path)


@click.command()
@click.option("--rate", type=float, metavar="N", help=f"records per second  [{_RATE:g}]")
@click.option("--profile", type=click.Choice(["steady", "ramp", "burst"]), help="shape of the rate  [steady]")
@click.option("--ramp-to", type=float, metavar="N", help="ramp: records per second at its end")
@click.option("--ramp-seconds", type=float, metavar="S", help="ramp: how long it takes  [--seconds]")
@click.option("--burst-rate", type=float, metavar="N", help="burst: records per second in it  [10 x --rate]")
@click.option("--burst-every", type=float, metavar="S", help="burst: from one to the next  [10]")
@click.option("--burst-length", type=float, metavar="S", help="burst: how long each takes  [1]")
@click.option("--count", type=int, metavar="N", help="stop after N records")
@click.option("--seconds", type=float, metavar="S", help="stop after S seconds")
@click.option("--flagged-share", type=float, metavar="X", help="share that matches a shipped rule  [0.05]")
@click.option("--malformed-share", type=float, metavar="X", help="share that is no valid record  [0.001]")
@click.option("--fraud-share", type=float, metavar="X", help="share of fraud, labelled in a header  [0]")
@click.option("--clock-offset", type=float, metavar="S", help="seconds by which the sender's clock is wrong  [0]")
@click.option("--seed", type=int, metavar="N", help="same seed, same records  [random]")
@click.option("--replay", type=_FILE, metavar="FILE", help="send this CSV, JSON lines or Parquet file")
@click.option("--select", metavar="SQL|FILE", help="replay: DuckDB SELECT FROM file; or paysim, sparkov")
@click.option("--speed", type=float, metavar="X", help="replay: multiple of the recorded pace  [1]")
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
        source = make_source(settings, seconds, arguments)
        offset_s = _or(arguments["clock_offset"], 0.0)
        sender = Sender(settings, source, count=count, seconds=seconds, clock_offset_s=offset_s)
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
    GeneratorMetrics(registry, sender)
    server = MetricsServer(registry, host, port, "metrics_port")
    try:
        yield
    finally:
        server.stop()


def _made(settings: Settings, seconds: float | None, given: dict[str, Any]) -> Source:
    from fraud_filter.generator.payments import Shares, made_source
    from fraud_filter.generator.records import MadeRecords

    _refuse(given, ("select", "speed"), "goes with --replay only")
    shares = Shares(
        flagged=_or(given["flagged_share"], _FLAGGED_SHARE),
        malformed=_or(given["malformed_share"], _MALFORMED_SHARE),
        fraud=_or(given["fraud_share"], _FRAUD_SHARE),
    )
    seed = _or(given["seed"], secrets.randbits(32))
    source = made_source(settings, _pace(seconds, given), seed=seed, shares=shares)
    if isinstance(source, MadeRecords):
        of = f"is for payments: {settings.payment_schema} requires other fields, which are made up by type"
        _refuse(given, ("flagged_share", "fraud_share"), of)
    return source


def _replayed(settings: Settings, seconds: float | None, given: dict[str, Any]) -> Source:
    from fraud_filter.generator.replay import Replay
    from fraud_filter.schema import load_schema

    _refuse(
        given,
        ("flagged_share", "malformed_share", "fraud_share", "clock_offset", "seed"),
        "is for made-up payments, not for --replay",
    )
    own_pace = given["rate"] is not None or given["profile"] is not None
    if own_pace:
        _refuse(given, ("speed",), "is a multiple of the recorded pace: leave out --rate and --profile")
    else:
        _refuse(given, _RAMP_ARGUMENTS + _BURST_ARGUMENTS, "goes with --profile only")
    return Replay(
        given["replay"],
        load_schema(settings.payment_schema),
        select=given["select"],
        pace=_pace(seconds, given) if own_pace else None,
        speed=_or(given["speed"], 1.0),
    )


def _pace(seconds: float | None, given: dict[str, Any]) -> Pace:
    from fraud_filter.generator.pace import Burst, Ramp, Steady

    profile = given["profile"] or "steady"
    if profile != "ramp":
        _refuse(given, _RAMP_ARGUMENTS, "goes with --profile ramp only")
    if profile != "burst":
        _refuse(given, _BURST_ARGUMENTS, "goes with --profile burst only")
    rate = _or(given["rate"], _RATE)
    if profile == "ramp":
        ramp_seconds = _or(given["ramp_seconds"], seconds)
        if given["ramp_to"] is None or ramp_seconds is None:
            raise UsageError("--profile ramp needs --ramp-to, and --ramp-seconds or --seconds")
        return Ramp(rate, given["ramp_to"], ramp_seconds)
    if profile == "burst":
        return Burst(
            rate,
            _or(given["burst_rate"], rate * _BURST_FACTOR),
            _or(given["burst_every"], _BURST_EVERY_S),
            _or(given["burst_length"], _BURST_LENGTH_S),
        )
    return Steady(rate)


def _or(value: T | None, default: T) -> T:
    return default if value is None else value


def _refuse(given: dict[str, Any], names: tuple[str, ...], why: str) -> None:
    for name in names:
        if given[name] is not None:
            raise UsageError(f"--{name.replace('_', '-')} {given[name]} {why}")
