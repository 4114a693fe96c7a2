"""The embedded stack under load, on which the changes of mode run."""

from __future__ import annotations

from fraud_filter.config import Settings
from fraud_filter.kafka.input_topic import open_input
from fraud_filter.kafka.topics import create_topics
from fraud_filter.probe.probe import Probe
from lab.harness.broker import Broker
from lab.harness.processes import Child, stop_signals
from lab.harness.programs import generator_program, on_this_machine
from lab.harness.supplies import get_supplies
from lab.harness.workspace import Workspace
from lab.transitions.result import StopKind, Transition
from lab.transitions.route import Change
from lab.transitions.run import Say, Scene, run_changes

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
    with stop_signals(), Workspace("fraud-filter-transitions-") as workspace:
        supplies = get_supplies(say)
        with Broker(workspace, java_home=supplies.java_home, jars=supplies.kafka_jars) as broker:
            own = on_this_machine(settings, broker.address, slots=_SLOTS)
            if below:
                own = own.model_copy(update={"checkpoint": below})
            create_topics(own, partitions=_PARTITIONS)
            generator = _generator(own, rate, workspace)
            with generator, Probe(own) as probe, open_input(own) as topic:
                others = (broker.child, generator)
                scene = Scene(own, workspace, supplies.java_home, probe, topic, others, seconds, say)
                results = run_changes(scene, changes, stops)
        if not all(result.ok for result in results):
            workspace.keep_logs()
    return results


def _generator(settings: Settings, rate: float, workspace: Workspace) -> Child:
    log = workspace.logs / "generator.log"
    return generator_program(settings, rate=rate, seconds=_LIMIT_S, flagged_share=0.5, malformed_share=0.01, log=log)
