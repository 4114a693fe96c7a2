"""An environment file for a stack beside the user's own: another project name, and ports that are free."""

from __future__ import annotations

from pathlib import Path

from fraud_filter.compose import env_file
from lab.harness.processes import free_ports

_LOCAL = "127.0.0.1"


def make_own_env(path: Path, project: str, **changes: str) -> Path:
    """Makes the file from `.env.example`, with secrets, free ports and a project name of its own."""
    env_file.make(path)
    values = {name: str(port) for name, port in ports_of(path).items()}
    own = {"COMPOSE_PROJECT_NAME": project, "KAFKA_BOOTSTRAP_SERVERS": f"{_LOCAL}:{values['KAFKA_PORT']}"}
    for name, value in {**own, **values, **changes}.items():
        env_file.change(path, name, value)
    return path


def ports_of(path: Path) -> dict[str, int]:
    """A free port for each port that the environment file names."""
    names = [name for name in env_file.read(path) if name.endswith("_PORT")]
    return dict(zip(names, free_ports(len(names)), strict=True))
