"""Containers that do not belong to a stack, run beside it in one of its networks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from docker.models.containers import Container

from fraud_filter.compose.stack import Stack

_ENDS_S = 600
#: What the entrypoint needs, and Java.
_MEMORY = {"/run/spark": "mode=0700,uid=10001", "/tmp": "exec"}  # noqa: S108 - the container's


def start(stack: Stack, network: str, *command: str, files: Mapping[Path, str] | None = None) -> Container:
    """Starts a program of our image that has no secret of the stack, but for what is in `files`.

    Args:
        network: as `docker run --network` takes it.
        files: which file it gets in which of its folders.
    """
    container: Container = stack.client.containers.run(
        "fraud-filter-app:local",
        list(command),
        detach=True,
        network=network,
        tmpfs=_MEMORY,
        mem_limit="1g",
        volumes={str(file): {"bind": f"{to}/{file.name}", "mode": "ro"} for file, to in (files or {}).items()},
    )
    return container


def end(container: Container) -> str:
    """Waits for its end, removes it and returns what it has printed; fails when it has failed."""
    return end_all({"it": container})["it"]


def end_all(containers: Mapping[str, Container]) -> dict[str, str]:
    """The same for several: all are removed, also when one of them has failed."""
    try:
        for container in containers.values():
            assert container.wait(timeout=_ENDS_S)["StatusCode"] == 0, container.logs().decode(errors="replace")
        return {name: each.logs(stderr=False).decode(errors="replace") for name, each in containers.items()}
    finally:
        for container in containers.values():
            container.remove(force=True)
