"""docs/tour.md, followed word by word from an installed wheel: each of its commands, on a stack of its own."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fraud_filter.compose import env_file
from fraud_filter.home import HOME
from lab.harness.compose_stack import ports_of

PROJECT = "fraud-filter-test-tour"
PAGE = (HOME / "docs/tour.md").read_text(encoding="utf-8")


def commands() -> list[str]:
    """The lines that the page has the reader call, in their order."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


Say = Callable[[str, Path], str]


@pytest.fixture
def say(programs: Path) -> Say:
    """Runs a line in a directory as the reader does, without a checkout; containers have the test's project's name."""
    clean = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
    clean["PATH"] = f"{programs}:{os.environ['PATH']}"

    def call(line: str, directory: Path) -> str:
        named = re.sub(r"\bfraud-filter-(?=[a-z-]+-1\b)", f"{PROJECT}-", line)
        done = subprocess.run(
            ["bash", "-c", named], cwd=directory, env=clean, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (line, done.stdout)
        return done.stdout

    return call


@pytest.fixture
def place(say: Say, tmp_path: Path) -> Path:
    """Where `cd tour` leads, with ports and a project name that nobody else has, and a rule of its own."""
    made, entered, *_ = commands()
    assert entered == "cd tour"
    say(made, tmp_path)
    env = tmp_path / "tour/.env"
    ports = ports_of(env)
    own = {"COMPOSE_PROJECT_NAME": PROJECT, "KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{ports['KAFKA_PORT']}"}
    for name, value in {**own, **ports}.items():
        env_file.change(env, name, str(value))
    with (env.parent / "conf/rules.yml").open("a") as rules:
        rules.write("  - {name: one-of-mine, when: amount >= 0}\n")
    return env.parent


@pytest.mark.exhaustive  # other tests call each of its verbs
def test_the_tour(say: Say, place: Path) -> None:
    try:
        said = [(line, say(line, place)) for line in commands()[2:]]
    finally:
        say("fraud-filter down --volumes", place)
    text = "\n".join(out for _, out in said)
    assert text.count("all healthy after") == 4
    assert "next: fraud-filter status" in text
    assert "from real-time to continuous mode" in text
    assert "refused with exit code 2" in text
    (tail,) = [out for line, out in said if line.startswith("fraud-filter tail")]
    assert tail.count("one-of-mine") == 3
    (audit,) = [out for line, out in said if line == "fraud-filter audit"]
    assert "nothing lost" in audit
