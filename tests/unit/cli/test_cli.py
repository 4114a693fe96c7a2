"""The program as a user calls it: help, configuration, bad input that needs no broker to be seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fraud_filter.cli.main import groups
from in_process import call

VERBS = [verb for group in groups().values() for verb in group]


def _start(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """As a process of its own."""
    inherited = {name: os.environ[name] for name in ("PATH", "FRAUD_ENV_FILE")}
    return subprocess.run(
        [sys.executable, "-m", "fraud_filter", *words],
        capture_output=True, text=True, timeout=200, check=False, env={**inherited, **environment},
    )  # fmt: skip


def test_help_lists_the_verbs_and_imports_nothing_heavy() -> None:
    code = (
        "import sys; from fraud_filter.cli.main import cli; cli.main(['--help'], standalone_mode=False); "
        "print([m for m in ('pyspark', 'duckdb', 'matplotlib', 'pyarrow', 'faker', 'pydantic') if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=True)
    *shown, imported = answer.stdout.splitlines()
    assert imported == "[]"
    for verb in VERBS:
        assert any(line.split()[:1] == [verb] for line in shown), verb


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str) -> None:
    answer = call(verb, "--help")
    assert answer.returncode == 0, answer.stderr
    assert "Usage:" in answer.stdout


def test_config_prints_what_is_in_force_and_masks_secrets(tmp_path: Path) -> None:
    secret = "-".join(("hunter", "2"))
    answer = _start(
        "config", "--json", "--mode", "continuous",
        FRAUD_KAFKA_SASL_PASSWORD=secret,
        FRAUD_LINGER_MS="3", HOME=str(tmp_path),
    )  # fmt: skip
    values = json.loads(answer.stdout)
    assert (values["mode"], values["linger_ms"]) == ("continuous", 3)
    assert values["kafka_sasl_password"] == "*" * 10
    assert secret not in answer.stdout + answer.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--mode", "turbo"], "setting mode (--mode, FRAUD_MODE): 'turbo'"),
        (["run", "--linger-ms", "x"], "setting linger_ms"),
        (["run", "--rules", "/nowhere/rules.yml"], "/nowhere/rules.yml can't be read"),
        (["run", "--payment-schema", "/nowhere/p.ddl"], "/nowhere/p.ddl can't be read"),
        (["run", "--checkpoint", "/proc/nowhere"], "setting checkpoint"),
        (["run", "--mode", "real-time", "--source", "rate"], "'rate' does not work in real-time mode"),
        (["run", "--mode", "real-time", "--source", "socket"], "'socket' works in micro-batch, continuous"),
        (["run", "--mode", "async-progress", "--source", "socket"], "'socket' works in micro-batch, continuous"),
        (
            ["run", "--socket-server", "nowhere"],
            "--socket-server is no option any more: give host and port",
        ),
        (["handover", "--rollback"], "--rollback is no option any more: send SIGUSR1 to the filter that waits"),
        (
            ["run", "--mode", "async-progress", "--source", "format"],
            "'format' works in micro-batch, continuous, real-time",
        ),
        (
            ["run", "--mode", "continuous", "--source", "rate", "--record-format", "json-registry"],
            "'json-registry' is for Kafka's records",
        ),
        (["run", "--mode", "async-progress", "--sink", "console"], "'console' does not work in async-progress mode"),
        (["run", "--kafka-bootstrap-servers", "127.0.0.1:1", "--kafka-timeout-s", "2"], "127.0.0.1:1"),
        (["fly"], "No such command 'fly'"),
        (["stauts"], "No such command 'stauts' (did you mean 'status'?)"),
        (["lab", "bensh"], "No such command 'bensh' (did you mean 'bench'?)"),
        (["bench", "--rates", "100"], "`fraud-filter bench` is now `fraud-filter lab bench`"),
        (["report"], "`fraud-filter report` is gone: Grafana's dashboards show the same"),
        (["run", "--wings"], "--wings"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(words: list[str], said: str, tmp_path: Path) -> None:
    checkpoint = [] if "--checkpoint" in words or words[0] != "run" else ["--checkpoint", str(tmp_path)]
    answer = (_start if "turbo" in words else call)(*words, *checkpoint)
    assert answer.returncode == 2, answer.stderr
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("run --mode ", {"micro-batch", "async-progress", "continuous", "real-time"}),
        ("run --mode re", {"real-time"}),
        ("run --log-format ", {"text", "json"}),
        ("tail --topic ", {"flagged", "approved", "rejected", "input"}),
        ("stat", {"status"}),
    ],
)
def test_tab_completes_verbs_and_choices(words: str, offered: set[str]) -> None:
    line = f"fraud-filter {words}"
    answer = call(
        _FRAUD_FILTER_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(len(line.split(" ")) - 1),
    )  # fmt: skip
    assert {each.partition(",")[2] for each in answer.stdout.splitlines()} == offered, answer.stderr


def test_a_filter_that_does_not_answer_is_told_as_json() -> None:
    answer = call("health", "--json", "--metrics-port", "9")
    found = json.loads(answer.stdout)
    assert answer.returncode == 1
    assert not found["healthy"]
    assert found["lag_records"] is None
