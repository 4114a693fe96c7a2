"""The contenders as data: how each is started on the topics of one start. Adding one is adding one value here."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from confluent_kafka import libversion

from fraud_filter.config import ModeName
from fraud_filter.errors import UsageError
from lab.bench.flink import program as flink
from lab.bench.launch import Launch
from lab.bench.model import with_model
from lab.bench.names import FLINK, FLINK_VELOCITY, FLOOR, MODEL, SINGLE, VELOCITY
from lab.harness.embedded_stack import EmbeddedStack
from lab.harness.processes import Child
from lab.harness.programs import environment, filter_program


@dataclass(frozen=True)
class Contender:
    """A program that reads the input topic and writes the two output topics, as the filter does.

    `program` gives it, not started yet; `settings` those that differ for it, and for its audit; `versions` what it
    adds to the versions of the report; `lacks` the sentence that says what must be done before it can run here, empty
    when nothing. `most_per_partition` are the payments per second of one partition that it is meant for; it is not run
    at higher rates. `is_extra`: it takes part only where it is named.
    """

    program: Callable[[Launch], Child]
    settings: Callable[[EmbeddedStack], Mapping[str, Any]] = lambda _: {}
    versions: Callable[[], dict[str, str]] = dict
    lacks: Callable[[], str] = str
    most_per_partition: float = math.inf
    is_extra: bool = False


def _mode(mode: ModeName, launch: Launch) -> Child:
    checkpoint = (launch.checkpoints or launch.stack.workspace.path) / f"{launch.name}-checkpoint"
    return filter_program(launch.stack, mode, launch.start, checkpoint=str(checkpoint), log=f"{launch.name}.log")


def _floor(launch: Launch) -> Child:
    stack = launch.stack
    offsets = {stack.settings.input_topic: {str(partition): at for partition, at in launch.start.items()}}
    own = stack.settings.model_copy(update={"starting_offsets": json.dumps(offsets)})
    argv = [sys.executable, "-m", "lab.bench.floor.client"]
    return Child("the floor", argv, log=stack.workspace.logs / f"{launch.name}.log", env=environment(own))


def _floor_versions() -> dict[str, str]:
    return {"confluent_kafka": metadata.version("confluent-kafka"), "librdkafka": libversion()[0]}


#: Rules that look at a card's payments. Their windows are longer than a start, so that append time and processing time
#: see the same payments.
VELOCITY_RULES = Path(__file__).parent / "velocity.yml"
#: Nothing waits behind a fetch then, so that it may be held as long as Kafka's consumers do by default.
_ONE_RECORD_A_POLL = {"continuous_max_poll_records": 1, "continuous_fetch_max_wait_ms": 500}


def _velocity(_: EmbeddedStack) -> Mapping[str, Any]:
    return {"rules": VELOCITY_RULES}


REGISTRY: dict[str, Contender] = {
    "micro-batch": Contender(partial(_mode, "micro-batch")),
    "async-progress": Contender(partial(_mode, "async-progress")),
    "continuous": Contender(partial(_mode, "continuous")),
    SINGLE: Contender(partial(_mode, "continuous"), lambda _: _ONE_RECORD_A_POLL, most_per_partition=1000),
    "real-time": Contender(partial(_mode, "real-time")),
    FLOOR: Contender(_floor, versions=_floor_versions),
    FLINK: Contender(flink.program, versions=flink.versions, lacks=flink.lacks),
    VELOCITY: Contender(partial(_mode, "real-time"), _velocity, is_extra=True),
    FLINK_VELOCITY: Contender(flink.program, _velocity, flink.versions, flink.lacks, is_extra=True),
    MODEL: Contender(partial(_mode, "real-time"), with_model, is_extra=True),
}


def available(names: tuple[str, ...], slowest: float = 0.0) -> tuple[str, ...]:
    """The named contenders; without names all but the extra ones that can run here.

    Args:
        slowest: the lowest rate that is planned, in payments per second of one partition.

    Raises:
        UsageError: a named one can't run here, or not at such rates; the message says what must be done.
    """
    if not names:
        return tuple(
            name
            for name, contender in REGISTRY.items()
            if not contender.is_extra and contender.most_per_partition >= slowest and not contender.lacks()
        )
    for name in names:
        contender = REGISTRY[name]
        if lacks := contender.lacks():
            raise UsageError(f"argument --contenders: {name!r} can't run here: {lacks}")
        if contender.most_per_partition < slowest:
            raise UsageError(
                f"argument --contenders: {name!r} is for up to {contender.most_per_partition:g} payments/s of each "
                f"partition, and the lowest of --rates is {slowest:g}: add a lower one or more --partitions, or leave "
                f"{name!r} out"
            )
    return names
