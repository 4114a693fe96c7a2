"""How long nothing is decided when a contender is killed or changed: a mode with and without a standby, and Flink."""

from __future__ import annotations

from collections.abc import Sequence

from fraud_filter.audit.run import audit
from fraud_filter.config import ModeName
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.input_topic import open_input
from fraud_filter.kafka.topics import create_topics
from fraud_filter.probe.probe import Probe
from lab.bench.flink import program as flink
from lab.bench.launch import Launch
from lab.bench.names import FLINK
from lab.harness.drain import drain
from lab.harness.embedded_stack import EmbeddedStack, Scene
from lab.harness.outcome import Audited
from lab.harness.processes import Child
from lab.harness.programs import generator_program
from lab.harness.waiting import let_pass
from lab.takeover.gap import open_tail
from lab.takeover.result import PLANNED, Interruption, What, describe
from lab.takeover.run import run_interruptions
from lab.transitions.family import kill_family

#: The modes that have decisions to lose in a second.
_MODES: tuple[ModeName, ...] = ("continuous", "real-time")
#: Payments per second meanwhile.
_RATE = 100.0
#: Under load before each interruption, in seconds: Flink has written a checkpoint by then.
_LOAD_S = 8.0
#: The generator is stopped; this is its limit should nobody do so.
_LIMIT_S = 3600
_START_S = 240
_DRAIN_S = 120


def measure_interruptions(
    stack: EmbeddedStack, contenders: Sequence[str], whats: Sequence[What], partitions: int
) -> list[Interruption]:
    """Each kind once in continuous and real-time mode, where they are contenders, and a kill of Flink.

    A kill is measured with a standby and without: then the same program is started again at once, as Flink is, from its
    checkpoint. A failure is part of the result.
    """
    kinds = {mode: _kinds(whats) for mode in _MODES if mode in contenders}
    with_flink = FLINK in contenders and "kill" in whats
    if not (any(kinds.values()) or with_flink):
        return []
    topics = {f"{name}_topic": f"interruptions.{name}" for name in ("input", "flagged", "rejected")}
    stack = stack.with_settings({**topics, "real_time_duration": "10 seconds"})
    create_topics(stack.settings, partitions=partitions)
    log = "interruptions-generator.log"
    generator = generator_program(stack, rate=_RATE, seconds=_LIMIT_S, flagged_share=0.5, log=log)
    found: list[Interruption] = []
    with generator, Probe(stack.settings) as probe, open_input(stack.settings) as topic:
        scene = Scene(stack, probe, topic, generator, _LOAD_S)
        for mode, chosen in kinds.items():
            for what, standby in chosen:
                found += run_interruptions(
                    scene, (what,), mode, standby=standby, tries=1, cards=0, in_turn=False,
                    tell=lambda one: stack.say(describe(one)),
                )  # fmt: skip
        if with_flink:
            found.append(_kill_flink(scene))
            stack.say(describe(found[-1]))
    return found


def _kinds(whats: Sequence[What]) -> list[tuple[What, bool]]:
    """With a standby, and without where nobody asks it to take over."""
    return [(what, standby) for what in whats for standby in (True, False) if standby or what not in PLANNED]


def _kill_flink(scene: Scene) -> Interruption:
    """Flink's own programs at one moment, and another one at once, from the newest checkpoint."""
    settings, start = scene.stack.settings, scene.topic.end_offsets()
    launch = Launch(scene.stack, start, "interruptions")
    try:
        with flink.program(launch) as first:
            drain(scene.topic, scene.probe.has_passed, _START_S, "Flink decided nothing", _programs(scene, first))
            let_pass(scene.seconds, _programs(scene, first))
            with open_tail(settings) as tail:
                killed_at = kill_family(first)
                first.stop()
                with flink.program(launch) as second:
                    gap = tail.await_fresh(killed_at, _START_S, second.raise_if_dead)
                    programs = _programs(scene, second)
                    end = drain(scene.topic, scene.probe.has_passed, _DRAIN_S, "not all was decided", programs)
        counts = Audited.of(audit(settings, start=start, end=end))
    except FraudFilterError as error:
        return Interruption("kill", FLINK, standby=False, error=str(error))
    return Interruption("kill", FLINK, False, gap.seconds, gap.every_partition_s, counts)


def _programs(scene: Scene, contender: Child) -> tuple[Child, ...]:
    return (scene.stack.broker, scene.generator, contender)
