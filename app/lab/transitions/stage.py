"""The embedded stack under load, on which the changes of mode run."""

from __future__ import annotations

from fraud_filter.config import Settings
from fraud_filter.kafka.consumer import open_input
from fraud_filter.probe.probe import Probe
from lab.harness.embedded_stack import Say, Scene, embedded_stack
from lab.harness.processes import stop_signals
from lab.harness.programs import generator_program
from lab.transitions.result import StopKind, Transition
from lab.transitions.route import Change
from lab.transitions.run import run_changes

_PARTITIONS = 2
#: One task slot a partition permanently, and some for the micro-batch modes.
_SLOTS = 4
#: The generator is stopped; this is its limit should nobody do so.
_LIMIT_S = 24 * 3600


def run_on_stage(
    settings: Settings,
    changes: list[Change],
    stops: list[StopKind],
    *,
    rate: float,
    seconds: float,
    below: str = "",
    say: Say,
) -> list[Transition]:
    """Starts Kafka and a generator, runs the changes, and stops everything.

    Args:
        rate: payments per second, all the time.
        seconds: under load before each stop and after each start.
        below: where the checkpoints go, on any Hadoop file system; on this machine's disk when it is empty.

    Raises:
        FraudFilterError: the stack could not be started.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP.
    """
    with stop_signals(), embedded_stack("transitions", settings, say, slots=_SLOTS, partitions=_PARTITIONS) as stack:
        own = stack.with_settings({"checkpoint": below} if below else {})
        generator = generator_program(
            own, rate=rate, seconds=_LIMIT_S, flagged_share=0.5, malformed_share=0.01, log="generator.log"
        )
        with generator, Probe(own.settings) as probe, open_input(own.settings) as topic:
            results = run_changes(Scene(own, probe, topic, generator, seconds), changes, stops)
        if not all(result.ok for result in results):
            stack.workspace.keep_logs()
    return results
