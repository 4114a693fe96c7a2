"""`fraud-filter tail` on real topics."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import Any

import pytest

from outputs import Outputs, large
from running import PROGRAM, Stage, call


def argv(stage: Stage, *words: str) -> list[str]:
    return [*PROGRAM, "tail", *stage.options, *words]


def tail(stage: Stage, *words: str) -> str:
    done = call("tail", *stage.options, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def records(stage: Stage, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in tail(stage, "--json", *words).splitlines()]


def test_the_last_decisions_of_both_topics_oldest_first(stage: Stage) -> None:
    with Outputs(stage) as outputs:
        paid = outputs.pay(*large(12))
        outputs.flag(paid[:8])
        outputs.flag(paid[8:], partition=1)
        broken = outputs.pay(b"{\x1b[2J")
        outputs.reject(broken)
    found = records(stage)
    assert [one["topic"] for one in found] == [stage.flagged] * 9 + [stage.rejected]
    assert [int(one["headers"]["source.offset"]) for one in found] == list(range(3, 13))
    assert found[0]["value"] == {**json.loads(paid[3].value or b""), "rules": ["large-amount"]}
    assert found[0]["key"] == "card"
    assert found[-1]["headers"]["reject.reason"] == "malformed-json"
    assert found[-1]["value_text"] == "{\x1b[2J"
    shown = tail(stage, "--topic", "rejected")
    assert "\x1b" not in shown
    assert f"{stage.rejected}, partition 0, offset 0" in shown
    assert len(records(stage, "--from-beginning")) == 13
    assert [one["offset"] for one in records(stage, "--topic", "input", "--limit", "2")] == [11, 12]
    assert [one["offset"] for one in records(stage, "--topic", "input", "--from-beginning", "--limit", "2")] == [0, 1]


def test_nothing_written_is_nothing_printed(stage: Stage) -> None:
    assert tail(stage) == ""


@pytest.mark.parametrize("end", ["limit", "signal"])
def test_follow_prints_what_arrives_until_its_end(stage: Stage, end: str) -> None:
    with Outputs(stage) as outputs:
        paid = outputs.pay(*large(3))
        outputs.flag(paid[:1])
        words = ("--follow", "--from-beginning", "--json", *(["--limit", "3"] if end == "limit" else []))
        with subprocess.Popen(argv(stage, *words), stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            assert json.loads(program.stdout.readline())["headers"]["source.offset"] == "0"
            outputs.flag(paid[1:])
            assert [json.loads(program.stdout.readline())["headers"]["source.offset"] for _ in "12"] == ["1", "2"]
            if end == "signal":
                program.send_signal(signal.SIGTERM)
            assert program.stdout.read() == ""
            assert program.wait(30) == 0


def test_a_reader_that_goes_away_is_no_defect(stage: Stage) -> None:
    with Outputs(stage) as outputs:
        outputs.flag(outputs.pay(*large(2000)))
    read, write = os.pipe()
    with subprocess.Popen(argv(stage, "--from-beginning"), stdout=write, stderr=subprocess.PIPE, text=True) as program:
        os.close(write)
        assert os.read(read, 10)
        os.close(read)
        assert program.stderr is not None
        assert program.stderr.read() == ""
