"""The Makefile and the set-up script: what they call, and how they refuse a machine that lacks something."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fraud_filter.home import HOME

MAKEFILE = HOME / "Makefile"


def make(*arguments: str) -> str:
    """What make prints; as if no other make had called it."""
    clean = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    command = ["make", "-C", str(HOME), "--no-print-directory", *arguments]
    return subprocess.run(command, env=clean, capture_output=True, text=True, check=True).stdout


def test_help_is_the_default_and_lists_every_target() -> None:
    phony = re.search(r"^\.PHONY: (.+)$", MAKEFILE.read_text(), re.MULTILINE)
    assert phony is not None
    listed = [line.split()[0] for line in make().splitlines()]
    assert sorted(listed) == sorted(phony.group(1).split())


def _ready(tmp_path: Path) -> str:
    """make's word for a set-up that is done: a file newer than all that it is made from."""
    (tmp_path / "ready").touch()
    return f"READY={tmp_path}/ready"


def _program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("failing", ["tests/unit", "tests/embedded -m not timed", "-m timed", "integration"])
def test_each_part_of_the_tests_runs_though_another_failed(tmp_path: Path, failing: str) -> None:
    _program(tmp_path / "pytest", f'echo "$*" >>{tmp_path}/ran\ncase "$*" in *"{failing}"*) exit 1; esac')
    command = ["make", "-C", str(HOME), "test", f"BIN={tmp_path}", _ready(tmp_path)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2
    ran = (tmp_path / "ran").read_text()
    assert [part in ran for part in ("tests/unit", "-m not timed", "-m timed", "tests/integration")] == [True] * 4


def test_all_parts_together_are_done_without_a_failure(tmp_path: Path) -> None:
    _program(tmp_path / "pytest", "exit 0")
    told = make("test", f"BIN={tmp_path}", _ready(tmp_path))
    assert "test-integration" not in told
    assert "retried: no test" in told.splitlines()


def set_up(tmp_path: Path, python: str, **commands: str) -> subprocess.CompletedProcess[str]:
    """Runs a copy of the set-up script with the given interpreter script and further commands, as no root."""
    (tmp_path / "app").mkdir()
    shutil.copy(HOME / "app/bootstrap", tmp_path / "app/bootstrap")
    for name, script in {"a-python": python, "id": "echo 1000", **commands}.items():
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    return subprocess.run(
        [tmp_path / "app/bootstrap"],
        env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "PYTHON": "a-python"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_old_python_is_refused_in_one_line(tmp_path: Path) -> None:
    done = set_up(tmp_path, 'case "$1" in --version) echo Python 3.8.2 ;; *) exit 1 ;; esac')
    assert done.returncode == 1
    assert done.stderr == (
        "set-up: Python 3.11 or newer is needed, this machine has Python 3.8.2: install one, or give it as PYTHON=...\n"
    )
    assert not (tmp_path / ".venv").exists()


#: Python as Debian ships it without python3-venv.
WITHOUT_VENV = 'case "$2" in *ensurepip*) exit 1 ;; *print*) echo python3.11-venv ;; esac'


def test_missing_venv_is_named_when_it_can_not_be_installed(tmp_path: Path) -> None:
    done = set_up(tmp_path, WITHOUT_VENV)
    assert done.returncode == 1
    assert done.stderr == (
        f"set-up: {tmp_path}/bin/a-python can't make virtual environments: install python3.11-venv\n"
    )


@pytest.mark.parametrize(
    "script",
    [
        *("app/base", "app/bootstrap", "app/doctor", "app/java", "app/lock", "app/locked"),
        *(".ci/run", ".ci/lint", ".ci/scan", "kafka/certificates", "kafka/entrypoint.sh", "kafka/healthcheck"),
        *("spark/entrypoint.sh", "spark/healthcheck", "monitoring/alertmanager/entrypoint.sh"),
    ],
)
def test_scripts_can_be_run_and_stop_at_the_first_error(script: str) -> None:
    path = HOME / script
    assert os.access(path, os.X_OK)
    assert re.search(r"^set -e?uo pipefail$", path.read_text(), re.MULTILINE)


def test_doctor_names_what_it_looked_at() -> None:
    done = subprocess.run([HOME / "app/doctor"], capture_output=True, text=True, check=False)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["cores", "memory", "python", ".venv", "java"]
    assert done.returncode in (0, 1)
    assert done.stderr == ""
