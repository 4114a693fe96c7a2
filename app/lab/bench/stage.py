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
from lab.bench.start import Start
from lab.harness.embedded_stack import EmbeddedStack, Say, embedded_stack, task_slots
from lab.harness.processes import stop_signals


@contextmanager
def open_stage(plan: BenchPlan, settings: Settings, say: Say) -> Iterator[EmbeddedStack]:
    """Starts Kafka; everything that was started is stopped at the end of the block, also when it is interrupted.

    Raises:
        FraudFilterError: the stack could not be started.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP.
    """
    with (
        stop_signals(),
        embedded_stack("bench", settings, say, slots=task_slots(plan.partitions)) as stack,
        cores_awake(stack.workspace) if plan.awake else nullcontext(),
    ):
        _warm_up_broker(stack, plan)
        yield stack


def _warm_up_broker(stack: EmbeddedStack, plan: BenchPlan) -> None:
    """A start of the floor without rates, so that the first contender does not meet a cold broker.

    With the shipped rules and schema: the floor can't have all that the filter can.

    Raises:
        FraudFilterError: it failed.
    """
    stack.say("warming up the broker")
    shipped = {
        name: Settings.model_fields[name].get_default(call_default_factory=True) for name in ("rules", "payment_schema")
    }
    warmed = Start(stack.with_settings(shipped), replace(plan, rates=()), FLOOR, 0).run()
    if warmed.error:
        raise FraudFilterError(f"the broker could not be warmed up: {warmed.error}")
