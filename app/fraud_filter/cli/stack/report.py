"""`fraud-filter report`: a page of plots from Prometheus' data, for places without Grafana."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fraud_filter.cli.stack.options import env_file_option

if TYPE_CHECKING:
    from fraud_filter.report.prometheus import Prometheus


@click.command()
@click.option("--since", default="10m", show_default=True, metavar="DURATION", help="how far back: 90s, 10m, 2h, 7d")
@click.option("--prometheus", "url", metavar="URL", help="address of Prometheus  [the stack's]")
@click.option("--query", metavar="NAME", help="name of the query  [the only one there is data of]")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    metavar="FILE",
    help="the page",
)
@env_file_option
def command(since: str, url: str | None, query: str | None, output: Path, env: Path) -> None:
    """Write one HTML page that loads nothing: latency, rates, lag, progress and events of the last minutes or hours.

    Exit codes: 0 written; 1 there is no data; 2 bad input, or no Prometheus answers.
    """
    from fraud_filter.report.data import collect
    from fraud_filter.report.page import write_page
    from fraud_filter.report.prometheus import Prometheus
    from fraud_filter.report.window import parse_since

    seconds = parse_since(since)
    prometheus = Prometheus(url) if url else _of_the_stack(env)
    data = collect(prometheus, seconds, query)
    write_page(data, output)
    click.echo(f"{output.resolve()}: the last {since} from {prometheus.address}")


def _of_the_stack(env: Path) -> Prometheus:
    """A Prometheus that is named is asked without Docker."""
    from fraud_filter.compose.addresses import find_prometheus

    return find_prometheus(env)
