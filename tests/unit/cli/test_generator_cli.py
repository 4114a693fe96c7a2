"""The arguments of `fraud-filter generate`: what goes together, and what is refused before anything is sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fraud_filter.cli.generate import command
from fraud_filter.errors import UsageError
from fraud_filter.generator.sender import Lateness, Report

DATA = Path(__file__).parents[2] / "data"
PAYSIM = ["--replay", str(DATA / "paysim.csv"), "--select", "paysim"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rate", "0"], "--rate 0 is not accepted"),
        (["--rate", "-3"], "--rate -3 is not accepted"),
        (["--count", "0"], "--count 0 is not accepted"),
        (["--seconds", "nan"], "--seconds nan is not accepted"),
        (["--clock-offset", "nan"], "--clock-offset nan is not accepted"),
        (["--clock-offset", "inf"], "--clock-offset inf is not accepted"),
        (["--seed", "-1"], "--seed -1 is not accepted"),
        (["--flagged-share", "2"], "--flagged-share 2 is not accepted"),
        (["--malformed-share", "-1"], "--malformed-share -1 is not accepted"),
        (["--profile", "ramp"], "--profile ramp needs --ramp-to, and --ramp-seconds or --seconds"),
        (["--profile", "ramp", "--ramp-to", "9"], "--profile ramp needs --ramp-to, and --ramp-seconds or --seconds"),
        (["--ramp-to", "9"], "--ramp-to 9.0 goes with --profile ramp only"),
        (["--profile", "ramp", "--burst-rate", "9"], "--burst-rate 9.0 goes with --profile burst only"),
        (["--profile", "burst", "--burst-length", "11"], "--burst-length 11 with --burst-every 10 is not accepted"),
        (["--speed", "2"], "--speed 2.0 goes with --replay only"),
        (["--select", "paysim"], "--select paysim goes with --replay only"),
        ([*PAYSIM, "--seed", "1"], "--seed 1 is for made-up payments, not for --replay"),
        ([*PAYSIM, "--speed", "2", "--rate", "5"], "--speed 2.0 is a multiple of the recorded pace"),
        ([*PAYSIM, "--ramp-to", "5"], "--ramp-to 5.0 goes with --profile only"),
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


def test_an_unreachable_broker_is_named() -> None:
    ran = CliRunner().invoke(command, ["--kafka-bootstrap-servers", "127.0.0.1:1", "--kafka-timeout-s", "1"])
    assert isinstance(ran.exception, UsageError)
    assert "KAFKA_BOOTSTRAP_SERVERS" in str(ran.exception)
    assert "'127.0.0.1:1' within 1 s" in str(ran.exception)


REPORT = Report(
    topic="payments",
    seed=7,
    duration_s=10.04,
    intended_rate=100.0,
    kept_rate=99.96,
    sent=1000,
    delivered=998,
    failed=2,
    error="Broker: Message size too large",
    flagged=51,
    malformed=3,
    late=4,
    lateness_ms=Lateness(p50=0.2, p99=1.5, max=12.25),
)


def test_the_report_for_a_person() -> None:
    assert REPORT.text() == (
        "records       1000 sent to payments in 10.0 s, 998 delivered, 2 failed\n"
        "rate          100.0/s kept, 100.0/s intended\n"
        "lateness      p50 0.20 ms, p99 1.50 ms, max 12.25 ms; 4 sent more than 10 ms late\n"
        "made flagged  51\n"
        "malformed     3\n"
        "seed          7\n"
        "first error   Broker: Message size too large"
    )


def test_the_report_for_a_program() -> None:
    written = json.loads(REPORT.json())
    assert written["kept_rate"] == 99.96
    assert written["lateness_ms"] == {"p50": 0.2, "p99": 1.5, "max": 12.25}
    assert (written["flagged"], written["malformed"], written["failed"]) == (51, 3, 2)
