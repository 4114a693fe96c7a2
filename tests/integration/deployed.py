"""The stack that these tests run on, and how they talk to it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from prometheus_client.parser import text_string_to_metric_families

from fraud_filter.compose.stack import Stack
from lab.harness.compose_stack import make_own_env

#: A project of its own, so that a running stack of the user is not touched. `.ci/run` knows the name.
PROJECT = "fraud-filter-test"


@dataclass
class Deployed:
    """A project with an environment file of its own."""

    env: Path

    def call(self, verb: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs `fraud-filter VERB ...` for this stack, as a user would."""
        return run(verb, "--env-file", str(self.env), *words, **environment)

    def open(self) -> Stack:
        """The stack as it is now."""
        return Stack.open(self.env)

    def url(self, setting: str, path: str) -> str:
        return f"http://127.0.0.1:{self.open().value(setting)}{path}"

    def json(self, setting: str, path: str) -> Any:
        answer = requests.get(self.url(setting, path), timeout=30)
        answer.raise_for_status()
        return answer.json()

    def metric(self, name: str, setting: str = "FRAUD_METRICS_PORT") -> dict[str, float]:
        """Values of one metric by partition, or by "" where it has none."""
        page = requests.get(self.url(setting, "/metrics"), timeout=30)
        page.raise_for_status()
        found = [s for f in text_string_to_metric_families(page.text) for s in f.samples if s.name == name]
        return {sample.labels.get("partition", ""): sample.value for sample in found}


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `fraud-filter ...`; the output has both streams."""
    return subprocess.run(
        [sys.executable, "-m", "fraud_filter", *words],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=900,
    )


def make_env(path: Path, **changes: str) -> Path:
    """An environment file with free ports and the tests' project name.

    In continuous mode the filter polls less often: that leaves two processors to the tests.
    """
    return make_own_env(path, PROJECT, **{"FRAUD_CONTINUOUS_FETCH_MAX_WAIT_MS": "20", **changes})
