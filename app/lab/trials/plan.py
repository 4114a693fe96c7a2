"""What is tried: a disturbance of a filter in a mode, with or without a standby. And in which order trials are run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Literal, cast, get_args

from fraud_filter.config import ModeName
from fraud_filter.errors import UsageError

StageName = Literal["embedded", "stack"]
Way = tuple[ModeName, ModeName]

#: Settings of a filter that either stage takes over.
SETTINGS = (
    "emit", "micro_batch_interval", "async_progress_interval_ms", "continuous_interval", "real_time_duration",
    "standby_warm_up_s", "hang_timeout_s", "checkpoint_lock_timeout_s", "max_offsets_per_trigger",
    "kafka_source_options", "spark_conf",
)  # fmt: skip
#: Disturbances that are changes by a filter that is warm by then: it asks the active one to end.
WARM = ("handover", "rules", "switch")
#: All ways between four modes, by their numbers.
_ROUND_TRIP = (0, 1, 0, 2, 0, 3, 1, 2, 1, 3, 2, 3, 0)
#: Those after which the filter may go on in another mode.
CHANGING = ("stop", "kill", "switch")


@dataclass(frozen=True)
class Trial:
    """One disturbance of a filter that runs in `mode`.

    `to`: the mode after it, the same one but for a change of mode. `standby`: a filter waits; of a change in `WARM`
    the next filter itself. `cards`: so many have paid before. `in_turn`: of a change in `WARM` the former filter waits,
    and makes the next change. `records`: that come in during an outage. `minutes` and `seed`: of disturbances at
    random. `given`: the settings that are not the defaults, for the table.
    """

    disturbance: str
    mode: ModeName
    to: ModeName
    standby: bool = False
    stage: StageName = "embedded"
    cards: int = 0
    in_turn: bool = False
    records: int = 0
    minutes: float = 0
    seed: int = 0
    given: str = ""

    @property
    def warm(self) -> bool:
        """Whether it is a change by a filter that is warm by then."""
        return self.disturbance in WARM

    def __str__(self) -> str:
        ways = f"{self.mode} to {self.to}" if self.to != self.mode else self.mode
        state = f" and the state of {self.cards:,} cards" if self.cards else ""
        side = "in turn" if self.in_turn else f"{'with a' if self.standby else 'without'} standby"
        return f"{self.disturbance} of {ways}, {side}{state}{' on the stack' if self.stage == 'stack' else ''}"


def plan(names: Sequence[str], ways: Sequence[Way], standbys: Sequence[bool], tries: int, common: Trial) -> list[Trial]:
    """All trials: for each standby and way each disturbance, `tries` times, so that kinds take turns.

    Args:
        names: the disturbances.
        ways: the modes before and after; a switch without another mode goes to one and back.
        common: what all trials share.

    Raises:
        UsageError: a disturbance leaves the mode as it is, and another one is to follow.
    """
    trials: list[Trial] = []
    for standby, (mode, to) in product(standbys, ways):
        # What changes in turn keeps to one kind: the former filter differs in that alone.
        kinds = product(names, range(tries)) if common.in_turn else ((b, a) for a, b in product(range(tries), names))
        for name, number in kinds:
            if mode != to and name not in CHANGING:
                raise UsageError(
                    f"argument --ways: {name!r} changes no mode: choose from {', '.join(CHANGING)}, or give --modes"
                )
            is_warm = name in WARM
            if standby != standbys[0] and (is_warm or mode != to):
                continue  # the next filter is the standby; a standby is in the mode that ends
            with_standby = is_warm or (standby and mode == to)
            trial = replace(
                common, disturbance=name, mode=mode, to=to, standby=with_standby, in_turn=common.in_turn and is_warm
            )
            trials.append(_to_and_fro(trial, number) if name == "switch" and mode == to else trial)
    return trials


def _to_and_fro(trial: Trial, number: int) -> Trial:
    other: ModeName = "real-time" if trial.mode == "micro-batch" else "micro-batch"
    before, after = (trial.mode, other) if number % 2 == 0 else (other, trial.mode)
    return replace(trial, mode=before, to=after)


def parse_ways(text: str) -> list[Way]:
    """The changes of mode in a list such as "continuous:micro-batch,micro-batch:real-time"; "all" are twelve.

    Each of the twelve goes on where the one before ended.

    Raises:
        UsageError: one of them is none.
    """
    modes = get_args(ModeName)
    if text == "all":
        return [(modes[one], modes[other]) for one, other in pairwise(_ROUND_TRIP)]
    ways: list[Way] = []
    for word in text.split(","):
        old, _, new = word.strip().partition(":")
        if old not in modes or new not in modes or old == new:
            raise UsageError(
                f"argument --ways: {word!r} is not accepted: give all, or changes as FROM:TO, separated by commas, of "
                f"two of {', '.join(modes)}"
            )
        ways.append((cast(ModeName, old), cast(ModeName, new)))
    return list(dict.fromkeys(ways))
