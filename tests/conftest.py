"""All tests run without the `.env` of the checkout, which is the user's own, and with a terminal's signals."""

from __future__ import annotations

import os
import signal
import site
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest_plugins = ["durations"]

# Before any module of the program is imported, and for every program that a test starts.
os.environ["FRAUD_ENV_FILE"] = os.devnull
# A shell without job control starts what it puts into the background with SIGINT ignored, and so would be every program
# that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fuzz-times", type=int, default=1, help="draw so many times as much in test_fuzzed_*")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What draws more may take longer."""
    limit = pytest.mark.timeout(int(config.getini("timeout")) * config.getoption("--fuzz-times"))
    for item in items:
        if "times" in getattr(item, "fixturenames", ()):
            item.add_marker(limit)


@pytest.fixture(scope="session")
def compose() -> None:
    """Docker's Compose; it may be without an engine."""
    try:
        asked = subprocess.run(
            ["docker", "compose", "version"], capture_output=True, text=True, check=False, timeout=60
        )
    except FileNotFoundError:
        pytest.skip("there is no docker command on this machine")
    if asked.returncode:
        said = (asked.stderr.strip() or f"exit code {asked.returncode}").splitlines()[0]
        pytest.skip(f"the docker command of this machine has no Compose: {said}")


@pytest.fixture(scope="session")
def promtool() -> str:
    """Prometheus' own linter, which `make lint` uses too."""
    program = Path(__file__).parent.parent / ".ci/promtool"
    found = subprocess.run([program], capture_output=True, text=True, check=False, timeout=300)
    if found.returncode:
        pytest.skip(found.stderr.strip())
    return found.stdout.strip()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    from fraud_filter.home import HOME

    words = ("-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder))
    subprocess.run([sys.executable, *words], cwd=HOME, check=True, capture_output=True, timeout=120)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `fraud-filter`, of the wheel in an environment that lends our own's other packages."""
    venv = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True, timeout=120)
    uv = Path(sys.executable).with_name("uv")
    words = ("pip", "install", "--quiet", "--offline", "--no-deps", "--python", str(venv / "bin/python"), str(wheel))
    subprocess.run([uv, *words], check=True, timeout=120)
    [packages] = venv.glob("lib/python*/site-packages")
    # Of a folder that is lent so, Python reads no further .pth file: none leads to the checkout.
    (packages / "lent.pth").write_text("\n".join(site.getsitepackages()))
    return venv / "bin"


@pytest.fixture(scope="session")
def installed(programs: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`fraud-filter WORDS` of the wheel, in a directory."""
    from lab.harness.java import require_java

    def call(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        own = {name: os.environ[name] for name in ("HOME", "PATH", "TMPDIR") if name in os.environ}
        return subprocess.run(
            [programs / "fraud-filter", *words], cwd=cwd, env={**own, "JAVA_HOME": str(require_java())},
            capture_output=True, text=True, check=False, timeout=900,
        )  # fmt: skip

    return call
