"""What `fraud-filter up` refuses: one line that names what to change, exit code 2, and nothing is started."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import docker
import pytest

from deployed import Deployed, make_env
from fraud_filter.home import HOME

PROJECT = "fraud-filter-refused"


@pytest.fixture
def refused(tmp_path: Path) -> Deployed:
    return Deployed(make_env(tmp_path / ".env", COMPOSE_PROJECT_NAME=PROJECT))


def _says(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, done.stdout
    assert len(done.stdout.splitlines()) == 1, done.stdout
    for word in words:
        assert word in done.stdout
    label = f"com.docker.compose.project={PROJECT}"
    assert docker.from_env().containers.list(all=True, filters={"label": label}) == []


def test_broken_rules(refused: Deployed, tmp_path: Path) -> None:
    """In a copy of the checkout: its own rules are left alone."""
    copy = tmp_path / "checkout"
    shutil.copytree(HOME / "app", copy / "app", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("docker-compose.yml", ".env.example"):
        shutil.copy(HOME / name, copy / name)
    (copy / "app/rules-velocity.yml").write_text("rules:\n  - name: broken\n")
    done = subprocess.run(
        [sys.executable, "-m", "fraud_filter", "up", "--env-file", str(refused.env)],
        env={**os.environ, "PYTHONPATH": str(copy / "app")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    _says(done, "rules-velocity.yml", "broken")


def test_no_docker_engine(refused: Deployed) -> None:
    done = refused.call("up", DOCKER_HOST="unix:///nowhere/docker.sock")
    assert (done.returncode, len(done.stdout.splitlines())) == (2, 1)
    assert "Docker Engine" in done.stdout
