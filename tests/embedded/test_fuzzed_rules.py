"""A rule is refused at the check, or answers every record: in time, without reading a file or opening a connection.

`--hypothesis-seed=N` repeats a run; it prints its seed. In CI the seed is always the same.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from drawn_rules import RuleDrawer, hostile_payments, spark_functions
from fraud_filter.query import decide as query
from fraud_filter.rules.check import find_refused
from fraud_filter.rules.ruleset import Rule, RuleSet
from oracle_cases import SCHEMA

_DRAWN = 2000
#: Rules with payments that a run tries at least.
_LEAST_PAIRS = 20_000
#: Rules that are tried in one query.
_AT_ONCE = 100
_RECORD_BYTES = 2**20
#: Seconds that a record may take.
_MOST_S = 1.0


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server that nobody may connect to."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.fixture
def unread(tmp_path: Path) -> Path:
    """A file that nobody may read: it can't be opened to be written without waiting until somebody does."""
    pipe = tmp_path / "unread"
    os.mkfifo(pipe)
    return pipe


class _Trial:
    """Hostile payments, and the filter's own judgement of them by rules."""

    def __init__(self, spark: Any) -> None:
        rows = [(bytearray(value),) for value in hostile_payments(SCHEMA)]
        self._records = spark.createDataFrame(rows, "_value BINARY").coalesce(1).cache()
        self.payments = self._records.count()
        self._java = psutil.Process(spark.sparkContext._gateway.proc.pid)

    def judge(self, rules: list[str]) -> float:
        """Judges all payments by the rules; returns the seconds of the second time, when the code is there.

        They are seconds of the clock, or of the processor where these are fewer: other programs may hold it.
        """
        named = RuleSet(Path("rules.yml"), tuple(Rule(f"r{at}", at, when=when) for at, when in enumerate(rules)))
        judged = query.judge(self._records, SCHEMA, named).select("_reason", "_rules", "_is_flagged")
        written = judged.write.format("noop").mode("overwrite")
        written.save()
        began, used = time.monotonic(), self._processor_s()
        written.save()
        return min(time.monotonic() - began, self._processor_s() - used)

    def _processor_s(self) -> float:
        user, system, *_ = self._java.cpu_times()
        return user + system

    def offenders(self, rules: list[str]) -> Iterator[str]:
        """Rules that end the query, or hold it for longer than allowed, with what happened."""
        try:
            took = self.judge(rules)
        except Exception as error:
            said = str(error).strip().splitlines()[0][:300]
        else:
            if took <= _MOST_S:
                return
            said = f"{took:.1f} s"
        if len(rules) == 1:
            yield f"{rules[0]!r}: {said}"
            return
        half = len(rules) // 2
        yield from self.offenders(rules[:half])
        yield from self.offenders(rules[half:])


def _taken(spark: Any, drawn: list[str]) -> list[str]:
    rules = RuleSet(Path("rules.yml"), tuple(Rule(f"r{at}", at, when=when) for at, when in enumerate(drawn)))
    refused = find_refused(spark, rules, SCHEMA, _RECORD_BYTES)
    return [rule.when for rule in rules.rules if rule.when and rule not in refused]


def test_drawn_rules_are_refused_or_answer_every_record(
    spark: Any, seed: int, times: int, listener: socket.socket, unread: Path
) -> None:
    place = f"http://127.0.0.1:{listener.getsockname()[1]}/x.xsd"
    drawer = RuleDrawer(spark_functions(spark), SCHEMA, (place, unread.as_uri(), str(unread)), seed)
    taken = _taken(spark, [drawer.draw() for _ in range(_DRAWN * times)])
    trial = _Trial(spark)
    offenders = [
        found for first in range(0, len(taken), _AT_ONCE) for found in trial.offenders(taken[first : first + _AT_ONCE])
    ]
    pairs = len(taken) * trial.payments
    print(f"{len(taken)} of {_DRAWN * times} rules were taken and tried on {trial.payments} payments: {pairs} pairs")  # noqa: T201
    assert offenders == []
    assert pairs >= _LEAST_PAIRS
    assert len(taken) > _DRAWN * times / 50  # else it shows nothing
    with pytest.raises(BlockingIOError):
        listener.accept()
    with pytest.raises(OSError, match="No such device or address"):
        os.open(unread, os.O_WRONLY | os.O_NONBLOCK)
