"""The verbs that measure and prove the filter: what `fraud-filter` shows as "Prove", and `fraud-filter lab`."""

from __future__ import annotations

import click

from fraud_filter.cli.verbs import LazyGroup, Sections

#: verb -> (module, one line for --help).
VERBS = {
    "demo": ("lab.cli.demo", "Run every mode in turn on an embedded Kafka and Spark, and report."),
    "lab": ("lab.cli.verbs", "Measure and test the filter as its maintainers do: bench, capacity, broker."),
    "transitions": (
        "lab.cli.transitions",
        "Change the mode in every way under load on an embedded stack, and audit.",
    ),
    "takeover": (
        "lab.cli.takeover",
        "Kill the filter under load, with and without a standby: how long decisions stop.",
    ),
    "backlog": ("lab.cli.backlog", "Work off a backlog in each mode on an embedded stack: time, memory, audit."),
    "faults": (
        "lab.cli.faults",
        "Inject faults into a separate, throwaway Compose stack under load, and audit after each.",
    ),
    "soak": ("lab.cli.soak", "Let a stack run with random faults, audit all of it, and look for growth."),
}
#: The same of `fraud-filter lab`.
LAB: Sections = {
    "Verbs": {
        "bench": (
            "lab.cli.bench",
            "Set modes, changed settings, a plain client and Flink side by side under load: latency, cost, audit.",
        ),
        "capacity": ("lab.cli.capacity", "Estimate what a rate needs, from the costs in a report of the bench."),
        "broker": ("lab.cli.broker", "Run an embedded Kafka broker on this machine until it is stopped."),
    }
}


@click.group(cls=LazyGroup, sections=lambda: LAB)
def command() -> None:
    """Measure and test the filter as its maintainers do. All verbs run what they need and leave nothing running."""
