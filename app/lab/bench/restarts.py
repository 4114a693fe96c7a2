"""What an interruption of each mode takes: Spark's Java is killed, and the mode is changed on its checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fraud_filter.config import ModeName
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.input_topic import open_input
from fraud_filter.kafka.topics import create_topics
from fraud_filter.probe.probe import Probe
from lab.bench.results.result import RestartResult
from lab.harness.embedded_stack import EmbeddedStack, Scene
from lab.harness.programs import generator_program
from lab.transitions.run import Leg

#: Payments per second meanwhile.
_RATE = 100.0
#: Under load before and after each interruption, in seconds.
_LOAD_S = 3.0
#: The generator is stopped; this is its limit should nobody do so.
_LIMIT_S = 3600


def measure_restarts(stack: EmbeddedStack, modes: Sequence[ModeName], partitions: int) -> list[RestartResult]:
    """Runs the modes one after the other on one checkpoint, back to the first, and kills the Java of each.

    A failure is part of the result, so that the rounds before are not lost, and ends the measurement: there is no
    checkpoint to go on with.
    """
    results: list[RestartResult] = []
    try:
        for result in _measure(stack, modes, partitions):
            results.append(result)  # one by one: what is measured stays when the next one fails
    except FraudFilterError as error:
        results.append(RestartResult(modes[len(results)], error=str(error)))
    return results


def _measure(stack: EmbeddedStack, modes: Sequence[ModeName], partitions: int) -> Iterator[RestartResult]:
    stack = stack.with_settings({f"{name}_topic": f"restarts.{name}" for name in ("input", "flagged", "rejected")})
    create_topics(stack.settings, partitions=partitions)
    log = "restarts-generator.log"
    generator = generator_program(stack, rate=_RATE, seconds=_LIMIT_S, flagged_share=0.5, log=log)
    with generator, Probe(stack.settings) as probe, open_input(stack.settings) as topic:
        leg = Leg(Scene(stack, probe, topic, generator, _LOAD_S), 0, modes[0])
        try:
            for mode, successor in zip(modes, [*modes[1:], modes[0]], strict=True):
                stack.say(f"restarts: {mode}")
                yield _interrupt(leg, mode, successor)
        finally:
            leg.stop()


def _interrupt(leg: Leg, mode: ModeName, successor: ModeName) -> RestartResult:
    recover_s = leg.recover()
    change = leg.change(successor, "clean")
    return RestartResult(mode, recover_s, change.seconds, successor, change.audit)
