"""The verbs that measure and prove the filter: what `fraud-filter` shows as "Prove", and `fraud-filter lab`."""

from __future__ import annotations

import click

from fraud_filter.cli.verbs import LazyGroup, Sections

#: verb -> (module, one line for --help).
VERBS = {
    "demo": ("lab.cli.demo", "Run every mode in turn on an embedded Kafka and Spark, and report."),
    "lab": ("lab.cli.verbs", "Measure and test the filter as its maintainers do: bench, trial, broker."),
}
#: The same of `fraud-filter lab`.
LAB: Sections = {
    "Verbs": {
        "bench": (
            "lab.cli.bench",
            "Set modes, changed settings, your query, other engines side by side under load: latency, cost, audit.",
        ),
        "trial": (
            "lab.cli.trial",
            "Disturb a filter under load, embedded or in a Compose stack: what is lost, how long nothing is decided.",
        ),
        "broker": ("lab.cli.broker", "Run an embedded Kafka broker on this machine until it is stopped."),
    }
}


@click.group(cls=LazyGroup, sections=lambda: LAB)
def command() -> None:
    """Measure and test the filter as its maintainers do. All verbs run what they need and leave nothing running."""
