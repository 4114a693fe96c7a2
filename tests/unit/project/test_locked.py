"""Nothing is installed but what the lock names, by its hash: the set-up and its list, with packages made here."""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from fraud_filter.home import HOME

#: What the set-up installs before it builds anything.
BUILD_TOOLS = ("editables", "hatchling", "packaging", "pathspec", "pluggy", "setuptools", "tomli", "trove-classifiers")

#: A build tool that leaves a trace when it runs.
PLANTED = """
import pathlib
def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    pathlib.Path({trace!r}).write_text("ran")
    raise SystemExit(1)
prepare_metadata_for_build_wheel = build_wheel
"""


def wheel(folder: Path, name: str, code: str = "") -> Path:
    stem = f"{name.replace('-', '_')}-1.0"
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name.replace('-', '_')}.py", code)
        archive.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{stem}.dist-info/RECORD", "")
    return path


def source(folder: Path, name: str, tool: str) -> Path:
    """A package that comes as source, and is built by `tool`."""
    files = {
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        "pyproject.toml": f'[build-system]\nrequires = ["{tool}"]\nbuild-backend = "{tool}"\n',
    }
    path = folder / f"{name}-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for file, text in files.items():
            entry = tarfile.TarInfo(f"{name}-1.0/{file}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def entry(path: Path, name: str) -> str:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{name}==1.0 \\\n    --hash=sha256:{digest}\n    # via fraud-filter (pyproject.toml)\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the scripts, a lock of the build tools, and a folder of packages that stands for the registry."""
    (tmp_path / "app").mkdir()
    for script in ("app/bootstrap", "app/locked"):
        if (HOME / script).exists():
            shutil.copy(HOME / script, tmp_path / script)
    registry = tmp_path / "registry"
    registry.mkdir()
    lock = "".join(entry(wheel(registry, name), name) for name in BUILD_TOOLS)
    (tmp_path / "requirements.lock").write_text(lock)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1"\n')
    return tmp_path


def set_up(checkout: Path) -> subprocess.CompletedProcess[str]:
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(checkout / "registry")}
    return subprocess.run(
        [checkout / "app/bootstrap"],
        env={"PATH": "/usr/bin:/bin", "PYTHON": sys.executable, **offline},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.exhaustive  # takes a minute, and judges scripts that hardly ever change
def test_a_build_tool_that_is_not_locked_never_runs(checkout: Path) -> None:
    trace = checkout / "trace"
    wheel(checkout / "registry", "planted", PLANTED.format(trace=str(trace)))
    package = source(checkout / "registry", "package", "planted")
    with (checkout / "requirements.lock").open("a") as lock:
        lock.write(entry(package, "package"))
    done = set_up(checkout)
    assert not trace.exists(), "it came without a hash, and ran"
    assert done.returncode != 0
    assert "planted" in done.stdout + done.stderr
    assert not (checkout / ".venv/.ready").exists()


@pytest.mark.exhaustive  # as above
@pytest.mark.parametrize("name", ["hatchling", "trove-classifiers"])
def test_a_build_tool_with_another_hash_is_refused(checkout: Path, name: str) -> None:
    wheel(checkout / "registry", name, "print('another')")
    done = set_up(checkout)
    assert "DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE" in done.stderr
    assert f"{name}==1.0 from file" in done.stderr
    assert not (checkout / ".venv/.ready").exists()


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


def is_local(command: str) -> bool:
    """Our own package, without what it needs."""
    return "--no-deps" in command and command.endswith(("--editable .", "/tmp/link/*.whl"))  # noqa: S108


@pytest.mark.parametrize("script", ["app/bootstrap", "Makefile", "kafka/Dockerfile", "spark/Dockerfile"])
def test_every_installation_is_by_hashes_and_builds_with_what_is_there(script: str) -> None:
    text = re.sub(r"\\\n\s*", "", (HOME / script).read_text())
    commands = [command.strip() for command in re.findall(r"[^&|\n]*(?:pip|pip\[@\]\}\") install[^&|\n]*", text)]
    assert commands
    set_once = "ENV UV_CONSTRAINT=/src/requirements.lock UV_REQUIRE_HASHES=true UV_NO_BUILD_ISOLATION=true" in text
    for command in commands:
        by_hash = "--require-hashes" in command or ("/opt/uv/bin/uv" in command and set_once)
        assert by_hash or is_local(command), command
        assert "--no-build-isolation" in command or not re.search(r"requirements\.lock|_LOCK", command), command
