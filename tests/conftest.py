"""All tests run without the `.env` of the checkout, which is the user's own, and with a terminal's signals."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

# Before any module of the program is imported, and for every program that a test starts.
os.environ["FRAUD_ENV_FILE"] = os.devnull
# A shell without job control starts what it puts into the background with SIGINT ignored, and so would be every program
# that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


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
