"""What `spark/healthcheck` says of a worker, by the page of a master that is played here."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from fraud_filter.home import HOME
from fraud_filter.metrics.server import MetricsServer, Registry

#: The script asks at port 8080; a stack of this machine holds that of 127.0.0.1, and tests beside these that of theirs.
MASTER = str(IPv4Address("127.0.0.1") + os.getpid())


class Page(BaseHTTPRequestHandler):
    """The master's /json/, as Spark writes it: a field a line."""

    state: dict[str, object]

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        lines = json.dumps(self.state, indent=2).replace('": ', '" : ')
        self.wfile.write(lines.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def page() -> Iterator[type[Page]]:
    server = ThreadingHTTPServer((MASTER, 8080), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Page.state = {"workers": [], "aliveworkers": 0, "status": "ALIVE"}
    yield Page
    server.shutdown()
    server.server_close()


def check(tmp_path: Path, *words: str, addresses: str = "172.18.0.3 172.20.0.4 ") -> tuple[int, str]:
    """Exit code and output, in a container with these addresses."""
    hostname = tmp_path / "hostname"
    hostname.write_text(f'#!/bin/sh\n[ "$1" = -I ] && echo "{addresses}"\n')
    hostname.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SPARK_MASTER": f"spark://{MASTER}:7077"}
    done = subprocess.run(
        [HOME / "spark/healthcheck", *words], env=env, capture_output=True, text=True, check=False, timeout=20
    )
    return done.returncode, (done.stdout + done.stderr).strip()


def worker(host: str, state: str) -> dict[str, object]:
    return {"id": f"worker-1-{host}", "host": host, "port": 7078, "state": state}


def test_a_worker_is_known_by_any_of_its_addresses(page: type[Page], tmp_path: Path) -> None:
    page.state = {"workers": [worker("172.20.0.44", "DEAD"), worker("172.20.0.4", "ALIVE")], "aliveworkers": 1}
    code, said = check(tmp_path, "worker")
    assert (code, said) == (0, 'the master says: "ALIVE"')
    assert check(tmp_path, "worker", addresses="172.20.0.44 ")[0] == 1
    assert check(tmp_path, "worker", addresses="172.20.0.5 ") == (1, "the master says: unknown")


@pytest.mark.parametrize(("status", "code"), [("ALIVE", 0), ("RECOVERING", 1), ("COMPLETING_RECOVERY", 1)])
def test_a_worker_waits_for_a_master_that_recovers(page: type[Page], tmp_path: Path, status: str, code: int) -> None:
    page.state = {"workers": [worker("172.20.0.4", "ALIVE")], "aliveworkers": 1, "status": status}
    assert check(tmp_path, "recovered")[0] == code


def test_a_worker_waits_for_a_master_that_is_away(tmp_path: Path) -> None:
    assert check(tmp_path, "recovered")[0] != 0


def test_a_page_tells_why_a_program_is_not_ready(tmp_path: Path) -> None:
    """Docker keeps the output: `docker inspect` shows it."""
    right = False
    pages = {"/readyz": lambda: (right, {"line": "q is starting"})}
    server = MetricsServer(Registry(), "127.0.0.1", 0, "metrics_port", pages)
    try:
        words = ("page", str(server.port), "/readyz")
        code, said = check(tmp_path, *words)
        assert code == 1
        assert said.splitlines() == [f"127.0.0.1:{server.port}/readyz answers 503", '{"line": "q is starting"}']
        right = True
        assert check(tmp_path, *words) == (0, "served")
    finally:
        server.stop()
    assert check(tmp_path, *words)[0] == 1
