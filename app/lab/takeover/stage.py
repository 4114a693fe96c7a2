"""The embedded stack under load, on which the filter is interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from fraud_filter.config import ModeName, Settings
from fraud_filter.kafka.consumer import open_input
from fraud_filter.probe.probe import Probe
from lab.harness.embedded_stack import Say, Scene, embedded_stack
from lab.harness.processes import stop_signals
from lab.harness.programs import generator_program
from lab.takeover.result import PLANNED, Interruption, What, describe
from lab.takeover.run import run_interruptions

_PARTITIONS = 2
#: Each filter, active or standby, has its own.
_SLOTS = 8
#: The generator is stopped; this is its limit should nobody do so.
_LIMIT_S = 24 * 3600


def run_on_stage(
    settings: Settings,
    whats: Sequence[What],
    modes: Sequence[ModeName],
    standbys: Sequence[bool],
    *,
    tries: int,
    mixed: bool,
    in_turn: bool,
    cards: int,
    rate: float,
    seconds: float,
    say: Say,
) -> list[Interruption]:
    """Starts Kafka and a generator, interrupts the filter, and stops everything.

    Args:
        whats: kinds of interruption.
        standbys: with a standby, without one, or both.
        tries: interruptions of each kind in each mode, with and without.
        mixed: those that are not planned take turns on one checkpoint.
        in_turn: planned changes go to and fro between two filters, see `Relay`.
        cards: whose state the filter has, see `Relay`.
        rate: payments per second, all the time.
        seconds: under load before each interruption.

    Raises:
        FraudFilterError: the stack could not be started.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP.
    """
    results: list[Interruption] = []
    with stop_signals(), embedded_stack("takeover", settings, say, slots=_SLOTS, partitions=_PARTITIONS) as stack:
        generator = generator_program(
            stack, rate=rate, seconds=_LIMIT_S, flagged_share=0.5, malformed_share=0.01, log="generator.log"
        )
        with generator, Probe(stack.settings) as probe, open_input(stack.settings) as topic:
            scene = Scene(stack, probe, topic, generator, seconds)
            for kinds, standby, mode in product(_together(whats, mixed=mixed), standbys, modes):
                if kinds[0] in PLANNED and standby != standbys[0]:
                    continue  # the next filter is the standby
                results += run_interruptions(
                    scene, kinds, mode, standby=standby, tries=tries, cards=cards, in_turn=in_turn,
                    tell=lambda one: say(describe(one)),
                )  # fmt: skip
        if not all(result.ok for result in results):
            stack.workspace.keep_logs()
    return results


def _together(whats: Sequence[What], *, mixed: bool) -> list[tuple[What, ...]]:
    """The kinds that follow each other on one checkpoint."""
    if not mixed:
        return [(what,) for what in whats]
    first = tuple(what for what in whats if what not in PLANNED)
    return [*([first] if first else []), *((what,) for what in whats if what in PLANNED)]
