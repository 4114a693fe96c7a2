"""A `.env` that lies in the current directory brings no code without a word, and none that others could write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from fraud_filter.compose import env_file
from fraud_filter.compose.stack import Stack
from fraud_filter.config import env_trust
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME

AGENT = {"spark.driver.extraJavaOptions": "-javaagent:/tmp/evil.jar"}


def config(directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """`fraud-filter config` in a directory, as a user calls it."""
    return subprocess.run(
        [sys.executable, "-m", "fraud_filter", "config"], cwd=directory, capture_output=True, text=True, check=False,
        timeout=60, env={"PATH": os.environ["PATH"], **environment},
    )  # fmt: skip


def write(directory: Path, options: dict[str, str], name: str = "FRAUD_SPARK_CONF") -> Path:
    file = directory / ".env"
    file.write_text(f"FRAUD_MODE=continuous\n{name}={json.dumps(options)}\n")
    return file


def test_java_options_of_a_foreign_directory_are_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path, AGENT)
    refused = config(tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    (line,) = refused.stderr.splitlines()
    assert "FRAUD_SPARK_CONF spark.driver.extraJavaOptions=-javaagent:/tmp/evil.jar" in line
    assert line.endswith("look at it, then name it: FRAUD_ENV_FILE=.env")
    named = config(tmp_path, FRAUD_ENV_FILE=".env")
    assert named.returncode == 0, named.stderr
    assert "-javaagent:/tmp/evil.jar" in named.stdout


def test_plain_settings_of_a_directory_need_no_word(tmp_path: Path) -> None:
    write(tmp_path, {"spark.executor.memory": "2g", "spark.network.timeout": "120s", "spark.cores.max": "4"})
    done = config(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "FRAUD_MODE=continuous\n" in done.stdout


def test_in_the_checkout_s_own_file_they_are_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, AGENT)
    for _ in range(2):
        env_trust.check(file, named=False, home=tmp_path)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"fraud-filter: {file} sets what can run code: FRAUD_SPARK_CONF spark.driver.extraJava")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.executor.extraJavaOptions", "-XX:+UseG1GC"),
        ("spark.jars", "evil"),
        ("spark.jars.packages", "org.evil:evil:1"),
        ("spark.driver.extraClassPath", "1"),
        ("spark.plugins", "Evil"),
        ("spark.pyspark.python", "python"),
        ("spark.files", "1"),
        ("spark.extraListeners", "Evil"),
        ("spark.sql.extensions", "org.evil.Extension"),
        ("spark.executorEnv.LD_PRELOAD", "1"),
        ("spark.some.setting.that.is.not.known", "org.evil.Class"),
        ("kafka.sasl.jaas.config", "com.sun.security.auth.module.JndiLoginModule required;"),
        ("kafka.interceptor.classes", "Evil"),
        ("spark.local.dir", "1"),
    ],
)
def test_what_names_a_class_a_file_or_a_program_could_run_code(tmp_path: Path, key: str, value: str) -> None:
    for name in ("FRAUD_SPARK_CONF", "fraud_spark_conf", "FRAUD_KAFKA_SINK_OPTIONS"):
        assert env_trust.runs_code(write(tmp_path, {key: value}, name)) == [f"{name.upper()} {key}={value}"]


def test_a_control_character_in_it_does_not_reach_the_terminal(tmp_path: Path) -> None:
    write(tmp_path, {"spark.jars": "\x1b]0;owned\x07"})
    refused = config(tmp_path)
    assert "\x1b" not in refused.stderr
    assert r"\x1b]0;owned" in refused.stderr


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    file = write(tmp_path, {})
    file.chmod(mode)
    for environment in ({}, {"FRAUD_ENV_FILE": str(file)}):
        refused = config(tmp_path, **environment)
        assert refused.returncode == 2
        assert "can be written by others" in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
    file.chmod(0o644)
    assert config(tmp_path).returncode == 0


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, {})
    if os.geteuid() == 0:
        os.chown(file, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(UsageError, match="belongs to another user"):
        env_trust.check(file, named=True, home=Path("/"))


def test_verbs_of_the_stack_refuse_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They hand the file to Compose, whose containers run the options."""
    monkeypatch.setattr("fraud_filter.compose.engine.connect", lambda: None)
    monkeypatch.delenv("FRAUD_ENV_FILE")
    monkeypatch.chdir(tmp_path)
    file = write(tmp_path, AGENT)
    with pytest.raises(UsageError, match=r"spark\.driver\.extraJavaOptions=-javaagent"):
        Stack.open(file.resolve())


@pytest.mark.parametrize("name", ["{directory}/evil.yml", "docker-compose.yml:{directory}/evil.yml", "../{up}evil.yml"])
def test_compose_files_out_of_the_checkout_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "evil.yml").touch()
    name = name.format(directory=tmp_path, up=os.path.relpath(tmp_path, HOME.parent) + "/")
    with pytest.raises(UsageError, match=r"COMPOSE_FILE: .*evil\.yml is not in /"):
        env_file.compose_files({"COMPOSE_FILE": name})


def test_the_file_does_not_choose_the_programs_that_are_run(tmp_path: Path) -> None:
    """A PATH in it was passed on, and `docker` was looked for there."""
    env = tmp_path / ".env"
    env_file.make(env)
    for name, value in (("PATH", str(tmp_path)), ("DOCKER_HOST", "tcp://evil:1"), ("LD_PRELOAD", "/tmp/evil.so")):  # noqa: S108
        env_file.change(env, name, value)
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\necho evil\n")
    program.chmod(0o755)
    stack = Stack(cast(Any, None), env, env_file.read(env))
    passed = stack.environment()
    assert passed["PATH"] == os.environ["PATH"]
    assert "LD_PRELOAD" not in passed
    assert passed.get("DOCKER_HOST") == os.environ.get("DOCKER_HOST")
    assert passed["KAFKA_HEAP"] == "512m"
    assert "evil" not in stack.compose("version").stdout


def test_every_setting_of_the_stack_is_passed_on(tmp_path: Path) -> None:
    env = tmp_path / ".env"
    env_file.make(env)
    values = env_file.read(env)
    passed = Stack(cast(Any, None), env, values).environment()
    needed = env_file.variables([env_file.COMPOSE_FILE])
    assert needed
    given = needed & set(values)  # what is not in the file has a default in the Compose file
    assert {name: passed[name] for name in given} == {name: values[name] for name in given}
    assert passed["CONF_DIR"] == str(tmp_path / "conf")
