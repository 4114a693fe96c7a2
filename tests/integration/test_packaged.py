"""The Compose stack from an installed wheel and a directory that `init` has written, without a checkout."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from fraud_filter.compose import env_file
from lab.harness.own_env import free_ports
from waiting import wait_until

PROJECT = "fraud-filter-test-packaged"


def test_up_from_init(installed: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    assert installed("init", "mine", cwd=tmp_path).returncode == 0
    project = tmp_path / "mine"
    (project / "conf/rules.yml").write_text("rules:\n  - name: one-of-mine\n    when: amount >= 0\n")
    env = project / ".env"
    ports = free_ports([name for name in env_file.read(env) if name.endswith("_PORT")])
    own = {"COMPOSE_PROJECT_NAME": PROJECT, "KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{ports['KAFKA_PORT']}"}
    for name, value in {**own, **ports, "FRAUD_MODE": "real-time"}.items():
        env_file.change(env, name, str(value))

    def newest_rules() -> list[str]:
        tail = installed("tail", "--topic", "flagged", "--limit", "1", "--json", cwd=project)
        assert tail.returncode == 0, tail.stderr
        names: list[str] = json.loads(tail.stdout)["value"]["rules"]
        return names

    try:
        up = installed("up", "--timeout", "500", cwd=project)
        assert up.returncode == 0, up.stdout + up.stderr
        assert "next: fraud-filter status" in up.stdout
        wait_until("a decision by the project's own rule", lambda: newest_rules() == ["one-of-mine"])
        status = installed("status", cwd=project)
        assert status.returncode == 0, status.stdout + status.stderr
    finally:
        down = installed("down", "--volumes", cwd=project)
    assert down.returncode == 0, down.stderr
