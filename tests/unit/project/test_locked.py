"""Nothing is installed but what the lock names, by its hash: the list of the lock, and every installation."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fraud_filter.home import HOME


def listed(checkout: Path, *names: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([checkout / "app/locked", *names], capture_output=True, text=True, check=False)


def test_the_list_has_every_version_of_a_package_with_its_hashes(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    shutil.copy(HOME / "app/locked", tmp_path / "app")
    lines = ("a==1 ; python_full_version < '3.11' \\", "    --hash=sha256:1", "    # via", "    #   b", "a==2 \\")
    (tmp_path / "requirements.lock").write_text("\n".join((*lines, "    --hash=sha256:2", "a-b==3 \\", "    --hash=x")))
    assert listed(tmp_path, "a").stdout.splitlines() == [lines[0], lines[1], lines[4], "    --hash=sha256:2"]


def test_what_is_not_locked_is_refused_in_one_line() -> None:
    done = listed(HOME, "rich", "no-such-package")
    assert done.returncode == 1
    assert done.stderr == (
        "locked: no-such-package is not in requirements.lock: name it in pyproject.toml and run `make lock`\n"
    )


def test_the_project_stands_for_all_that_it_asks_for() -> None:
    names = {re.match(r"[a-z0-9-]+", line) for line in listed(HOME, "--project").stdout.splitlines() if "==" in line}
    pyproject = (HOME / "pyproject.toml").read_text()
    block = re.search(r"^dependencies = \[\n(.*?)^\]", pyproject, re.MULTILINE | re.DOTALL)
    assert block
    asked = set(re.findall(r'^ {4}"([a-z0-9-]+)', block[1], re.MULTILINE))
    assert {name[0] for name in names if name} == asked
    assert len(asked) > 15


def test_a_package_can_be_left_out() -> None:
    named = listed(HOME, "--project", "-jgo", "faker").stdout
    assert "\nrich==" in named
    assert "\nfaker==" in named
    assert "jgo==" not in named


@pytest.mark.parametrize("script", ["app/bootstrap", "Makefile", "kafka/Dockerfile", "spark/Dockerfile"])
def test_every_installation_is_by_hashes_and_builds_with_what_is_there(script: str) -> None:
    text = re.sub(r"\\\n\s*", "", (HOME / script).read_text())
    commands = [command.strip() for command in re.findall(r"[^&|\n]*(?:pip|pip\[@\]\}\") install[^&|\n]*", text)]
    assert commands
    set_once = "ENV UV_CONSTRAINT=/src/requirements.lock UV_REQUIRE_HASHES=true UV_NO_BUILD_ISOLATION=true" in text
    for command in commands:
        by_hash = "--require-hashes" in command or ("/opt/uv/bin/uv" in command and set_once)
        is_local = "--no-deps" in command and command.endswith(("--editable .", "/tmp/link/*.whl"))  # noqa: S108
        assert by_hash or is_local, command
        assert "--no-build-isolation" in command or not re.search(r"requirements\.lock|_LOCK", command), command
