"""The arguments of `fraud-filter generate`: what goes together, and what is refused before anything is sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from fraud_filter.cli.generate import command
from fraud_filter.errors import UsageError

DATA = Path(__file__).parents[2] / "data"
PAYSIM = ["--replay", str(DATA / "paysim.csv"), "--select", "paysim"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rate", "0"], "--rate 0 is not accepted"),
        (["--rate", "-3"], "--rate -3 is not accepted"),
        (["--rate", "nan"], "--rate nan is not accepted"),
        (["--rate", "2000000"], "--rate 2e+06 is not accepted"),
        (["--count", "0"], "--count 0 is not accepted"),
        (["--seconds", "nan"], "--seconds nan is not accepted"),
        (["--seed", "-1"], "--seed -1 is not accepted"),
        (["--flagged-share", "2"], "--flagged-share 2 is not accepted"),
        (["--malformed-share", "-1"], "--malformed-share -1 is not accepted"),
        (["--fraud-share", "-1"], "--fraud-share -1 is not accepted"),
        (["--flagged-share", "0.6", "--malformed-share", "0.5"], "--flagged-share 0.6 with --malformed-share 0.5 is"),
        (["--flagged-share", "0.6", "--fraud-share", "0.5"], "with --fraud-share 0.5 is not"),
        (["--speed", "2"], "--speed 2.0 goes with --replay only"),
        (["--select", "paysim"], "--select paysim goes with --replay only"),
        *(([*PAYSIM, "--speed", speed], f"--speed {speed} is not accepted") for speed in ("0", "-1", "nan", "inf")),
        ([*PAYSIM, "--seed", "1"], "--seed 1 is for made-up payments, not for --replay"),
        ([*PAYSIM, "--speed", "2", "--rate", "5"], "--speed 2.0 is a multiple of the recorded pace"),
        (["--replay", "/nowhere/file.csv"], "--replay /nowhere/file.csv can't be read"),
        (["--payment-schema", "/nowhere/p.ddl"], "/nowhere/p.ddl can't be read"),
        (["--rules", "/nowhere/rules.yml"], "/nowhere/rules.yml can't be read"),
    ],
)
def test_bad_input_is_named_before_the_broker_is_asked(words: list[str], said: str) -> None:
    # The broker does not exist: asking it first would give another message.
    ran = CliRunner().invoke(command, ["--kafka-bootstrap-servers", "127.0.0.1:1", *words])
    assert isinstance(ran.exception, UsageError)
    assert said in str(ran.exception)
