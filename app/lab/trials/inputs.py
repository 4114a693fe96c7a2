"""Disturbances of the input: a partition more, unread payments that are removed, and a sender whose clock jumps."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from fraud_filter.audit.result import Finding
from fraud_filter.audit.run import audit
from fraud_filter.compose.stack import FILTER
from fraud_filter.compose.waiting import start
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.client import librdkafka_config
from fraud_filter.kafka.refusals import describe_error
from lab.harness.compose_stack import ComposeStack
from lab.harness.waiting import wait_until
from lab.trials.plan import Trial
from lab.trials.stack_acts import Effect

GENERATOR = "generator"
_GO_ON_WITHOUT = "FRAUD_FAIL_ON_DATA_LOSS"
_CLOCK = "GENERATOR_CLOCK_OFFSET"
#: A day ahead, then an hour back, in seconds; and how long each lasts.
_JUMPS = ("86400", "-3600")
_JUMP_S = 5.0
#: How long payments pile up unread before they are removed, and then those that stay.
_UNREAD_S = 6.0
_STARTED_S = 300.0
_SENDER_LOOKS_S = 30.0
_LOOK_S = 0.5
#: As `supervisor/losses.py` tells them.
_RANGE = re.compile(r"partition (\d+) offsets (\d+) to (\d+)")
#: More findings than an audit can have here.
_ALL = 10_000_000

Span = tuple[int, int, int]


def add_partition(stage: ComposeStack, _: Trial) -> Effect:
    """Gives the input topic one more partition; recovery counts from the first payment in it."""
    before = stage.ends()
    _run_admin(stage, lambda admin, topic: admin.create_partitions([NewPartitions(topic, len(before) + 1)]))
    has_come = lambda: bool(stage.ends().get(len(before)))  # noqa: E731
    wait_until(has_come, _SENDER_LOOKS_S, "the new partition got no payment", ())
    return Effect(notes=(f"{len(before)} partitions became {len(before) + 1}",))


def remove_unread(stage: ComposeStack, _: Trial) -> Effect:
    """Kills the filter, lets payments pile up, removes a part of them as retention would, and starts the filter.

    The filter must refuse to go on, by name of the offsets; with FRAUD_FAIL_ON_DATA_LOSS=false it must go on, and its
    report must name every payment that was lost. Recovery counts from the second start.

    Raises:
        FraudFilterError: it did not refuse, or did not report.
    """
    committed = stage.committed()
    container = stage.container(FILTER)
    container.kill()
    time.sleep(_UNREAD_S)
    low = stage.ends()
    undecided = audit(stage.settings, start=committed, end=low, settle_s=1, examples=_ALL).examples["lost"]
    time.sleep(_UNREAD_S)
    _run_admin(
        stage,
        lambda admin, topic: admin.delete_records([TopicPartition(topic, number, end) for number, end in low.items()]),
    )
    began = time.time()
    container.start()
    refusal = _await_log(stage, began, "are gone: ")
    since = _restart(stage, "false")
    report = _await_log(stage, began, "event=data_lost ")
    stage.stack.change(_GO_ON_WITHOUT, "true")  # for the next container
    reported = spans(report)
    if spans(refusal) != reported:
        raise FraudFilterError(f"the refusal names {spans(refusal)}, the report {reported}")
    records = sum(end + 1 - first for _, first, end in reported)
    return Effect(
        since=since,
        low=low,
        unreported=len(outside(undecided, reported)),
        notes=(
            "exit code 3 names the offsets",
            f"{records} payments reported, {len(undecided)} of them to be flagged or rejected",
        ),
    )


def jump_clock(stage: ComposeStack, _: Trial) -> Effect:
    """Lets the sender of the payments go on with a clock that is far ahead, then behind, then right again.

    Each is a start of the sender; recovery counts from the last.
    """
    try:
        for offset in _JUMPS:
            _run_generator(stage, offset)
            time.sleep(_JUMP_S)
    finally:
        _run_generator(stage, "0")
    return Effect()


def spans(report: str) -> list[Span]:
    """The lost offsets that a line of the filter's names: partition, first, last."""
    return [(int(number), int(first), int(last)) for number, first, last in _RANGE.findall(report)]


def outside(findings: Iterable[Finding], reported: Iterable[Span]) -> list[Finding]:
    """The findings whose payments no reported span names."""
    known = list(reported)
    return [
        finding
        for finding in findings
        if not any(finding.partition == number and first <= finding.offset <= last for number, first, last in known)
    ]


def _restart(stage: ComposeStack, go_on: str) -> float:
    """Gives the filter the setting; returns the moment of its start."""
    stage.stack.change(_GO_ON_WITHOUT, go_on)
    began = time.monotonic()
    start(stage.stack, ("--no-deps", FILTER), [FILTER], _STARTED_S)
    return began


def _run_generator(stage: ComposeStack, offset: str) -> None:
    stage.stack.change(_CLOCK, offset)
    done = stage.stack.compose("up", "--detach", "--no-build", "--no-deps", GENERATOR, timeout_s=_STARTED_S)
    if done.returncode:
        raise FraudFilterError(f"the generator did not start: {done.stdout.strip()}")


def _await_log(stage: ComposeStack, since: float, sign: str) -> str:
    """The newest line of the filter's log since then that has the sign."""
    deadline = time.monotonic() + _STARTED_S
    while time.monotonic() < deadline:
        log = str(stage.container(FILTER).logs(since=since).decode(errors="replace"))
        found = [line for line in log.splitlines() if sign in line]
        if found:
            return found[-1]
        time.sleep(_LOOK_S)
    raise FraudFilterError(f"the filter did not log {sign!r} within {_STARTED_S:g} s")


def _run_admin(stage: ComposeStack, act: Callable[[AdminClient, str], Mapping[Any, Future[Any]]]) -> None:
    admin = AdminClient(librdkafka_config(stage.settings))
    try:
        for answer in act(admin, stage.settings.input_topic).values():
            answer.result(timeout=stage.settings.kafka_timeout_s)
    except KafkaException as error:
        raise FraudFilterError(f"the broker refused: {describe_error(error)}") from None
