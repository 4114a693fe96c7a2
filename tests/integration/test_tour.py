"""docs/tour.md, followed word by word: each of its commands, on a stack of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fraud_filter.compose import env_file
from fraud_filter.home import HOME
from lab.harness.own_env import free_ports

PROJECT = "fraud-filter-test-tour"
PAGE = (HOME / "docs/tour.md").read_text(encoding="utf-8")


def commands() -> list[str]:
    """The lines that the page has the reader call, in their order."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def say(line: str, directory: Path) -> str:
    """Runs a line as the reader does; containers have the name of the test's project."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    clean = {name: value for name, value in os.environ.items() if name != "FRAUD_ENV_FILE"}
    named = re.sub(r"\bfraud-filter-(?=[a-z-]+-1\b)", f"{PROJECT}-", line)
    done = subprocess.run(
        ["bash", "-c", named], cwd=directory, env={**clean, "PATH": path}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (line, done.stdout)
    return done.stdout


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where `cd tour` leads, with ports and a project name that nobody else has."""
    made, entered, *_ = commands()
    assert entered == "cd tour"
    say(made, tmp_path)
    env = tmp_path / "tour/.env"
    ports = free_ports([name for name in env_file.read(env) if name.endswith("_PORT")])
    own = {"COMPOSE_PROJECT_NAME": PROJECT, "KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{ports['KAFKA_PORT']}"}
    for name, value in {**own, **ports}.items():
        env_file.change(env, name, str(value))
    return env.parent


def test_the_tour(place: Path) -> None:
    try:
        said = [(line, say(line, place)) for line in commands()[2:]]
    finally:
        say("fraud-filter down --volumes", place)
    text = "\n".join(out for _, out in said)
    assert text.count("all healthy after") == 4
    assert "from real-time to continuous mode" in text
    assert "refused with exit code 2" in text
    (audit,) = [out for line, out in said if line == "fraud-filter audit"]
    assert "nothing lost" in audit
