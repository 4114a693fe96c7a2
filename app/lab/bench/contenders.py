"""The contenders as data: how each is started on the topics of one start. Adding one is adding one value here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from fraud_filter.config import ModeName, Settings
from fraud_filter.errors import UsageError
from fraud_filter.modes import MODES
from lab.bench import plain_spark
from lab.bench.changes import parse_change, parse_options
from lab.bench.flink import program as flink
from lab.bench.launch import Launch, lacks_default, shipped
from lab.bench.streams import program as streams
from lab.harness.drain import END_MARK
from lab.harness.processes import Child
from lab.harness.programs import filter_program

#: What a contender promises of its decisions.
AT_LEAST_ONCE, TRANSACTIONS = "at-least-once", "exactly-once, when a transaction is committed"


@dataclass(frozen=True)
class Contender:
    """A program that reads the input topic and writes the two output topics, as the filter does.

    `program` gives it, not started yet; `shared` are the settings that differ for it, for the generator and for its
    audit; `own` those that differ for it alone, or its engine's options. `delivery` is what it promises: one with
    `TRANSACTIONS` is measured by when a consumer sees its decisions. `versions` is what it adds to the versions of
    the report; `lacks` the sentence that says what must be done before it can run here, empty when nothing.
    `is_extra`: it takes part only where it is named. `label`: its name as topics can have it. `partitions` of its
    input topic, 0 for those of the load; `checkpoints`: the directory that takes Spark's, None for the workspace.
    `takes_query`: it can run a query of the user's in place of rules, `needs_query`: it runs nothing else.
    `has_places`: what it writes tells which record it is about; without, there is neither latency nor audit. `mark`
    is the value of the record by which the end of a load is told; with another than the usual one no record is
    malformed.
    """

    name: str
    program: Callable[[Launch], Child]
    shared: Mapping[str, Any] = field(default_factory=dict)
    versions: Callable[[], dict[str, str]] = dict
    lacks: Callable[[], str] = lambda: ""
    is_extra: bool = False
    is_filter: bool = False
    delivery: str = AT_LEAST_ONCE
    own: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    partitions: int = 0
    checkpoints: Path | None = None
    takes_query: bool = False
    needs_query: bool = False
    mark: bytes = END_MARK
    has_places: bool = True


def _filter(name: str, mode: ModeName, shared: Mapping[str, Any] | None = None, **options: Any) -> Contender:
    options = {"delivery": MODES[mode].delivery_guarantee, "takes_query": shared is None, **options}
    options = {"program": partial(_run_filter, mode), **options}
    return Contender(name, shared={"mode": mode, **(shared or {})}, is_filter=True, **options)


def _engine(name: str, engine: ModuleType, *, transactions: bool = False, **options: Any) -> Contender:
    if transactions:
        options |= {"own": engine.EXACTLY_ONCE, "delivery": TRANSACTIONS}
    lacks = getattr(engine, "lacks", lambda: "")
    return Contender(name, **{"program": engine.program, "versions": engine.versions, "lacks": lacks, **options})


def _run_filter(mode: ModeName, launch: Launch) -> Child:
    return filter_program(
        launch.stack, mode, launch.start, checkpoint=str(launch.folder), log=f"{launch.name}.log", changes=launch.own
    )


#: Rules that look at a card's payments. Their windows are longer than a start, so that append time and processing time
#: see the same payments.
VELOCITY_RULES = Path(__file__).parent / "velocity.yml"
_VELOCITY = {"rules": VELOCITY_RULES}
_COPY = {**shipped(), "query": f"{Path(__file__).with_name('copy_query.py')}:transform"}

#: In the order in which they are shown; docs/benchmark.md says what each is.
CONTENDERS: Mapping[str, Contender] = {
    one.name: one
    for one in (
        *(_filter(mode, mode) for mode in MODES),
        _engine("streams", streams),
        _engine("streams-eos", streams, transactions=True),
        _engine("flink", flink),
        _engine("flink-eos", flink, transactions=True),
        _filter("velocity", "real-time", _VELOCITY, is_extra=True),
        _engine("flink-velocity", flink, program=partial(flink.program, windows=True), shared=_VELOCITY, is_extra=True),
        _engine(
            "flink-json", flink, program=partial(flink.program, is_parsed=True), mark=flink.PARSED_MARK, is_extra=True
        ),
        _filter("spark", "real-time", program=plain_spark.program, is_extra=True, needs_query=True),
        _filter("copy", "real-time", _COPY, is_extra=True, takes_query=True),
        _engine("flink-copy", flink, shared=_COPY, is_extra=True, takes_query=True),
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
        if name not in CONTENDERS:
            raise UsageError(f"argument --contenders: {name!r} is not a contender: choose from {', '.join(CONTENDERS)}")
        if part in found:
            raise UsageError(f"argument --contenders: {part!r} is given twice: name each once")
        base = CONTENDERS[name]
        found[part] = _changed(base, change, f"{name}-{len(found) + 1}") if colon else replace(base, label=name)
    return list(found.values())


def _changed(base: Contender, text: str, label: str) -> Contender:
    named = replace(base, name=f"{base.name}:{text}", label=label)
    if not base.is_filter:
        return replace(named, own={**base.own, **parse_options(text)})
    change = parse_change(text)
    return replace(
        named,
        shared={**base.shared, **change.decided},
        own=change.others,
        partitions=change.partitions,
        checkpoints=change.checkpoints,
    )


def available(named: Sequence[Contender], settings: Settings) -> list[Contender]:
    """The named contenders; without any all but the extra ones that can run here, with the user's settings.

    Raises:
        UsageError: a named one can't run here; the message says what must be done.
    """
    if not named:
        return [one for one in parse_contenders(CONTENDERS) if not one.is_extra and not _lacks(one, settings)]
    for one in named:
        if lacks := _lacks(one, settings):
            raise UsageError(f"argument --contenders: {one.name!r} can't run here: {lacks}")
    return list(named)


def _lacks(one: Contender, settings: Settings) -> str:
    if settings.query and not one.takes_query:
        return "it decides by rules, and you name a query of yours"
    if one.needs_query and not settings.query:
        return "it runs a query of yours: name one with --query"
    is_default_alone = not one.is_filter and not one.takes_query
    return (lacks_default(settings) if is_default_alone else "") or one.lacks()
