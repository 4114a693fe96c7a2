"""The Docker Engine: is it here, does it answer, has it Compose?"""

from __future__ import annotations

import shutil
import subprocess

import docker
from docker.errors import DockerException

from fraud_filter.errors import UsageError

_ANSWER_S = 20


def connect() -> docker.DockerClient:
    """A client of the engine that this machine's `docker` command talks to.

    Raises:
        UsageError: no engine answers, or the Compose plugin is missing; says what to install.
    """
    if not shutil.which("docker"):
        raise UsageError("the stack needs Docker, and there is no `docker` command: install Docker Engine with Compose")
    try:
        client = docker.from_env(timeout=_ANSWER_S)
        client.ping()
    except DockerException as error:
        reason = "permission denied" if "permission denied" in str(error).lower() else "start it, or see `docker info`"
        raise UsageError(f"the stack needs a Docker Engine, and none answers: {reason}") from None
    compose = subprocess.run(["docker", "compose", "version"], capture_output=True, timeout=_ANSWER_S, check=False)
    if compose.returncode:
        raise UsageError("the stack needs Compose v2, and `docker compose` is not there: install the Compose plugin")
    return client
