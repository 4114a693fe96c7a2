"""The demo's arguments: what is accepted, and how the rest is refused before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from fraud_filter.errors import UsageError
from in_process import call
from lab.bench.names import MODE_NAMES, parse_modes
from lab.demo.run import demo_load


def test_all_modes_run_when_none_is_named() -> None:
    assert parse_modes("") == parse_modes(" , ") == MODE_NAMES
    assert MODE_NAMES == ("micro-batch", "async-progress", "continuous", "real-time")


def test_modes_run_in_the_order_given() -> None:
    assert parse_modes("real-time, micro-batch") == ("real-time", "micro-batch")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("continuous,turbo", "'turbo' is not a mode: choose from micro-batch, async"),
        ("continuous,continuous", "'continuous' is given twice"),
    ],
)
def test_unknown_and_repeated_modes_are_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=f"argument --modes: {reason}"):
        parse_modes(text)


def test_the_warm_up_is_at_the_measured_rate() -> None:
    load = demo_load(100, warmup_s=7)
    assert (load.rates, load.settle_s, load.warmup_s) == ((100,), 7, 0)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--modes", "turbo"],
        ["--seconds", "0"],
        ["--warmup", "-0.5"],
        ["--flagged-share", "1.1"],
        ["--rate", "many"],
        ["--rate", "inf"],
        ["--output", "/dev/null/report"],
        ["--real-time-duration", "soon"],
    ],
)
def test_bad_arguments_end_with_code_2_and_one_sentence(arguments: list[str], tmp_path: Path) -> None:
    done = call("demo", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert arguments[1] in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
