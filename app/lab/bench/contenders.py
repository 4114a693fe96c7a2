"""The contenders as data: how each is started on the topics of one start. Adding one is adding one value here."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from fraud_filter.config import ModeName, Settings
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.modes import MODES
from lab.bench.changes import PARTITIONS, parse_change, parse_options, write_rules
from lab.bench.flink import program as flink
from lab.bench.launch import Launch
from lab.bench.streams import program as streams
from lab.harness.embedded_stack import EmbeddedStack
from lab.harness.processes import Child
from lab.harness.programs import environment, filter_program, verb

SINGLE, STREAMS, STREAMS_EOS = "continuous-single", "streams", "streams-eos"
FLINK, FLINK_EOS, FLINK_VELOCITY = "flink", "flink-eos", "flink-velocity"
VELOCITY, MODEL = "velocity", "model"
#: What a contender promises of its decisions.
AT_LEAST_ONCE, TRANSACTIONS = "at-least-once", "exactly-once, when a transaction is committed"
#: Former contenders, and what to do instead.
_GONE = {"floor": f"take {STREAMS}, a client without an engine's cluster, too"}


@dataclass(frozen=True)
class Contender:
    """A program that reads the input topic and writes the two output topics, as the filter does.

    `words` say what it is; `program` gives it, not started yet; `shared` the settings that differ for it, for the
    generator and for its audit; `own` those that differ for it alone, or its engine's options. `delivery` is what it
    promises: one with `TRANSACTIONS` is measured by when a consumer sees its decisions. `versions` is what it adds to
    the versions of the report; `lacks` the sentence that says what must be done before it can run here, with the user's
    settings, empty when nothing. `most_per_partition` are the payments per second of one partition that it is meant
    for; it is not run at higher rates. `is_extra`: it takes part only where it is named. `label`: its name as topics
    can have it. `base`: the contender of which this one is a change. `partitions` of its input topic, 0 for those of
    the load; `checkpoints`: the directory that takes Spark's, None for the workspace.
    """

    name: str
    words: str
    program: Callable[[Launch], Child]
    shared: Callable[[EmbeddedStack], Mapping[str, Any]] = lambda _: {}
    versions: Callable[[], dict[str, str]] = dict
    lacks: Callable[[Settings], str] = lambda _: ""
    most_per_partition: float = math.inf
    is_extra: bool = False
    is_filter: bool = False
    delivery: str = AT_LEAST_ONCE
    own: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    base: str = ""
    partitions: int = 0
    checkpoints: Path | None = None


def _filter(name: str, words: str, mode: ModeName, shared: Any = None, **options: Any) -> Contender:
    def settings(stack: EmbeddedStack) -> Mapping[str, Any]:
        return {"mode": mode, **(shared(stack) if shared else {})}

    delivery = MODES[mode].delivery_guarantee
    return Contender(name, words, partial(_run_filter, mode), settings, is_filter=True, delivery=delivery, **options)


def _engine(name: str, words: str, engine: ModuleType, *, transactions: bool = False, **options: Any) -> Contender:
    if transactions:
        options |= {"own": engine.EXACTLY_ONCE, "delivery": TRANSACTIONS}
    return Contender(name, words, engine.program, versions=engine.versions, lacks=engine.lacks, **options)


def _run_filter(mode: ModeName, launch: Launch) -> Child:
    return filter_program(
        launch.stack, mode, launch.start, checkpoint=str(launch.folder), log=f"{launch.name}.log", changes=launch.own
    )


_HERE = Path(__file__).parent
#: Rules that look at a card's payments. Their windows are longer than a start, so that append time and processing time
#: see the same payments.
VELOCITY_RULES = _HERE / "velocity.yml"
_MODEL_RULES = _HERE / "model.yml"
#: Training takes less than a minute on 2 idle cores.
_TRAINING_S = 300
#: Nothing waits behind a fetch then, so that it may be held as long as Kafka's consumers do by default.
_ONE_RECORD_A_POLL = {"continuous_max_poll_records": 1, "continuous_fetch_max_wait_ms": 500}


def _velocity(_: EmbeddedStack) -> Mapping[str, Any]:
    return {"rules": VELOCITY_RULES}


def _with_model(stack: EmbeddedStack) -> Mapping[str, Any]:
    """The setting that names rules with a model of boosted trees, learnt from made-up payments once a bench.

    Raises:
        FraudFilterError: it could not be trained.
    """
    rules = stack.workspace.path / _MODEL_RULES.name
    if not rules.exists():
        stack.say("training a model of 50 boosted trees, once")
        argv = [*verb("train"), "generated", "--out", str(rules.with_suffix(""))]
        env = {**environment(stack.settings), "JAVA_HOME": str(stack.java_home)}
        with Child("the training", argv, log=stack.workspace.logs / "train.log", env=env) as training:
            if training.wait(_TRAINING_S) != 0:
                raise FraudFilterError("the model could not be trained: " + " ".join(training.tail()[-3:]))
        shutil.copy(_MODEL_RULES, rules)
    return {"rules": rules}


#: In the order in which they are shown.
CONTENDERS: Mapping[str, Contender] = {
    one.name: one
    for one in (
        _filter("micro-batch", "the filter in micro-batch mode", "micro-batch"),
        _filter(
            "async-progress",
            "the filter in micro-batch mode with asynchronous progress tracking",
            "async-progress",
        ),
        _filter("continuous", "the filter in continuous mode", "continuous"),
        _filter(
            SINGLE,
            "the filter in continuous mode, one record a poll: for up to 1,000 payments/s a partition",
            "continuous",
            lambda _: _ONE_RECORD_A_POLL,
            most_per_partition=1000,
        ),
        _filter("real-time", "the filter in real-time mode", "real-time"),
        _engine(STREAMS, "Kafka Streams, one processor", streams),
        _engine(
            STREAMS_EOS,
            "Kafka Streams, exactly-once by transactions of 100 ms, as a read_committed consumer sees it",
            streams,
            transactions=True,
        ),
        _engine(FLINK, "Apache Flink, one SQL statement", flink),
        _engine(
            FLINK_EOS,
            "Apache Flink, exactly-once by a transaction each checkpoint, 100 ms, as a read_committed consumer sees it",
            flink,
            transactions=True,
        ),
        _filter(
            VELOCITY,
            "the filter in real-time mode with three exact velocity windows of a card",
            "real-time",
            _velocity,
            is_extra=True,
        ),
        _engine(
            FLINK_VELOCITY,
            "Apache Flink with the same three windows, in processing time",
            flink,
            shared=_velocity,
            is_extra=True,
        ),
        _filter(
            MODEL,
            "the filter in real-time mode with a model of 50 boosted trees",
            "real-time",
            _with_model,
            is_extra=True,
        ),
    )
}


def parse_contenders(texts: Iterable[str]) -> list[Contender]:
    """The contenders in texts such as `real-time,real-time:linger_ms=5`, each once, in their order.

    A comma within braces belongs to a value.

    Raises:
        UsageError: a name is not known or given twice, a change is not accepted.
    """
    found: dict[str, Contender] = {}
    for part in (part.strip() for text in texts for part in re.split(r",(?![^{]*})", text)):
        name, colon, change = part.partition(":")
        if not part:
            continue
        if name in _GONE:
            raise UsageError(f"argument --contenders: {name!r} is gone: {_GONE[name]}")
        if name not in CONTENDERS:
            raise UsageError(f"argument --contenders: {name!r} is not a contender: choose from {', '.join(CONTENDERS)}")
        if part in found:
            raise UsageError(f"argument --contenders: {part!r} is given twice: name each once")
        base = CONTENDERS[name]
        found[part] = _changed(base, change, f"{name}-{len(found) + 1}") if colon else replace(base, label=name)
    return list(found.values())


def _changed(base: Contender, text: str, label: str) -> Contender:
    named = replace(base, name=f"{base.name}:{text}", words=f"{base.words}, with {text}", label=label, base=base.name)
    if not base.is_filter:
        return replace(named, own={**base.own, **parse_options(text)})
    change = parse_change(text)

    def shared(stack: EmbeddedStack) -> Mapping[str, Any]:
        given = {**base.shared(stack), **change.decided}
        settings = stack.settings.model_copy(update=given)
        return {**given, "rules": write_rules(settings, change.sizes, stack.workspace.path / f"rules-{label}")}

    return replace(
        named,
        shared=shared,
        own=change.others,
        partitions=change.sizes.get(PARTITIONS, 0),
        checkpoints=change.checkpoints,
    )


def available(named: Sequence[Contender], slowest: float, partitions: int, settings: Settings) -> list[Contender]:
    """The named contenders; without any all but the extra ones that can run here.

    Args:
        slowest: the lowest rate that is planned, in payments per second.
        partitions: of the input topic.
        settings: the user's.

    Raises:
        UsageError: a named one can't run here, or not at such rates; the message says what must be done.
    """
    if not named:
        return [
            one
            for one in parse_contenders(CONTENDERS)
            if not one.is_extra and one.most_per_partition >= slowest / partitions and not one.lacks(settings)
        ]
    for one in named:
        if lacks := one.lacks(settings):
            raise UsageError(f"argument --contenders: {one.name!r} can't run here: {lacks}")
        if one.most_per_partition < slowest / (one.partitions or partitions):
            raise UsageError(
                f"argument --contenders: {one.name!r} is for up to {one.most_per_partition:g} payments/s of each "
                f"partition, and the lowest of --rates has more: add a lower one or more --partitions, or leave "
                f"{one.name!r} out"
            )
    return list(named)
