"""An environment file for a stack beside the user's own: another project name, and ports that are free."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

from fraud_filter.compose import env_file

_LOCAL = "127.0.0.1"


def make_own_env(path: Path, project: str, **changes: str) -> Path:
    """Writes `path` from `.env.example` with secrets and free ports of its own.

    Args:
        path: the file to make.
        project: name of the Compose project.
        changes: further settings by name.

    Raises:
        UsageError: the file can't be written.
    """
    env_file.make(path)
    ports = free_ports([name for name in env_file.read(path) if name.endswith("_PORT")])
    values = {name: str(port) for name, port in ports.items()}
    own = {"COMPOSE_PROJECT_NAME": project, "KAFKA_BOOTSTRAP_SERVERS": f"{_LOCAL}:{values['KAFKA_PORT']}"}
    for name, value in {**own, **values, **changes}.items():
        env_file.change(path, name, value)
    return path


def free_ports(names: Sequence[str]) -> dict[str, int]:
    """A port for each name that nobody holds on this machine now."""
    sockets = {name: socket.socket() for name in names}
    try:
        for each in sockets.values():
            each.bind((_LOCAL, 0))
        return {name: each.getsockname()[1] for name, each in sockets.items()}
    finally:
        for each in sockets.values():
            each.close()
