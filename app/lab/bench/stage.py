"""The embedded stack of a bench, with a broker that is warm."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from lab.bench.awake import cores_awake
from lab.bench.names import FLOOR
from lab.bench.plan import BenchPlan
from lab.bench.start import Say, Stage, Start
from lab.harness.broker import Broker
from lab.harness.machine import describe_versions, java_version, kafka_version
from lab.harness.processes import stop_signals
from lab.harness.programs import on_this_machine
from lab.harness.supplies import get_supplies
from lab.harness.workspace import Workspace


@contextmanager
def open_stage(plan: BenchPlan, settings: Settings, say: Say) -> Iterator[Stage]:
    """Starts Kafka; everything that was started is stopped at the end of the block, also when it is interrupted.

    Raises:
        FraudFilterError: the stack could not be started.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP.
    """
    with stop_signals(), Workspace("fraud-filter-bench-") as workspace:
        supplies = get_supplies(say)
        versions = describe_versions(kafka=kafka_version(supplies.kafka_jars), java=java_version(supplies.java_home))
        awake = cores_awake(workspace) if plan.awake else nullcontext()
        with awake, Broker(workspace, java_home=supplies.java_home, jars=supplies.kafka_jars) as broker:
            own = on_this_machine(settings, broker.address, slots=max(8, plan.partitions + 2))
            stage = Stage(plan, own, workspace, supplies.java_home, broker.child, say, versions)
            _warm_up_broker(stage)
            yield stage


def _warm_up_broker(stage: Stage) -> None:
    """A start of the floor without rates, so that the first contender does not meet a cold broker.

    With the shipped rules and schema: the floor can't have all that the filter can.

    Raises:
        FraudFilterError: it failed.
    """
    stage.say("warming up the broker")
    shipped = {
        name: Settings.model_fields[name].get_default(call_default_factory=True) for name in ("rules", "payment_schema")
    }
    settings = stage.settings.model_copy(update=shipped)
    warmed = Start(replace(stage, plan=replace(stage.plan, rates=()), settings=settings), FLOOR, 0).run()
    if warmed.error:
        raise FraudFilterError(f"the broker could not be warmed up: {warmed.error}")
