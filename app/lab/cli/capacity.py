"""`fraud-filter lab capacity`: what a rate would need, from the costs that a bench has measured on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from fraud_filter.errors import EXIT_OK
from lab.cli.console import open_console
from lab.cli.options import SOME, docs_option, rate_option

_COUNT = click.IntRange(1)
_COLUMNS = (
    "mode",
    "measured at, /s",
    "filter, CPU s/1,000",
    "Kafka, CPU s/1,000",
    "cores",
    "partitions",
    "workers",
    "brokers",
)


@click.command()
@click.argument("report", type=click.Path(path_type=Path), default=Path("bench-report.json"))
@rate_option(1_000_000.0)
@click.option("--worker-cores", type=_COUNT, default=16, show_default=True, help="cores of a Spark worker")
@click.option("--broker-cores", type=_COUNT, default=16, show_default=True, help="cores of a broker")
@click.option("--replication", type=_COUNT, default=3, show_default=True, help="replicas of each record in Kafka")
@click.option("--utilisation", type=SOME, default=0.5, show_default=True, help="share of a core that may be used")
@docs_option("docs/results/bench.md", "capacity")
def command(report: Path, rate: float, docs: Path | None, **arguments: float) -> int:
    """Estimate cores, partitions, workers and brokers for a rate, from the unit costs in a REPORT of the bench.

    docs/scaling.md says how, and what is assumed.
    """
    from rich.table import Table

    from lab.bench.capacity import Machines, estimate, load_report
    from lab.bench.table import rounded
    from lab.harness.tables import markdown, shown, write_between

    machines = Machines(**arguments)  # type: ignore[arg-type]  # each by its own type
    needs = estimate(load_report(report)["results"], rate, machines)
    rows = [
        [
            need.mode,
            f"{need.measured_at:,.0f}",
            *(rounded(cost) for cost in (need.filter_cpu_s, need.broker_cpu_s)),
            *(shown(count) for count in (need.cores, need.partitions, need.workers, need.brokers)),
        ]
        for need in needs
    ]
    if docs:
        write_between(docs, "capacity", markdown(_COLUMNS, ([f"`{row[0]}`", *row[1:]] for row in rows)))
    table = Table(*_COLUMNS, title=f"{rate:,.0f} payments/s")
    for row in rows:
        table.add_row(*row)
    open_console().print(table)
    return EXIT_OK
