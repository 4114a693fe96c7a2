"""An alert that fires reaches the receiver, and so does its end: a real Prometheus and a real Alertmanager.

Both with the stack's own files: Prometheus with its `alerting`, Alertmanager as its container starts it.
"""

from __future__ import annotations

import http.server
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tenacity import retry, stop_after_delay, wait_fixed

from fraud_filter.home import HOME
from lab.harness.processes import Child, free_ports
from programs import require_program

SOURCE = HOME / "monitoring/alertmanager"
#: Where Debian's looks for them, and nowhere else.
TEMPLATES = Path("/usr/share/prometheus/alertmanager/default.tmpl")
#: Seconds: for programs to start and to tell each other, on a machine that has much else to do.
PATIENCE_S = 120
RULES = {
    "groups": [
        {
            "name": "test",
            "rules": [
                {
                    "alert": "ServiceDown",
                    "expr": 'up{job="service"} == 0',
                    "labels": {"severity": "critical"},
                    "annotations": {"summary": "The service does not answer"},
                }
            ],
        }
    ]
}


@contextmanager
def serve(handler: type[http.server.BaseHTTPRequestHandler], port: int) -> Iterator[None]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


class Service(http.server.BaseHTTPRequestHandler):
    """A service with a metric."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(b"answers 1\n")


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, Path]:
    """Those that the entry point calls, in a folder of their own for its PATH."""
    if not TEMPLATES.exists():
        pytest.skip(f"no {TEMPLATES}, without which Debian's Alertmanager does not start")
    found = {
        name: Path(require_program(f"FRAUD_TEST_{variable}", name, str(HOME / ".venv" / name)))
        for variable, name in (
            ("PROMETHEUS", "prometheus"),
            ("ALERTMANAGER", "prometheus-alertmanager"),
            ("AMTOOL", "amtool"),
        )
    }
    (tmp_path / "bin").mkdir()
    for name, program in found.items():
        (tmp_path / "bin" / name).symlink_to(program.resolve())
    return {name: tmp_path / "bin" / name for name in found}


def alertmanager(directory: Path, programs: dict[str, Path], url: str, port: int) -> tuple[list[str], dict[str, str]]:
    """Command and environment of the container's own entry point, with its own file but for the waits."""
    config, waits = re.subn(r"(group_wait|group_interval): \w+", r"\1: 1s", (SOURCE / "alertmanager.yml").read_text())
    assert waits == 2
    (directory / "alertmanager.yml").write_text(config)
    entry = str(shutil.copy(SOURCE / "entrypoint.sh", directory))
    (directory / "run").mkdir()
    path = f"{programs['amtool'].parent}:/usr/bin:/bin"
    environment = {"PATH": path, "ALERT_FOLDER": str(directory / "run"), "ALERT_WEBHOOK_URL": url}
    return [entry, f"--storage.path={directory / 'data'}", f"--web.listen-address=127.0.0.1:{port}"], environment


def prometheus(directory: Path, program: Path, port: int, service: int, alerts: int) -> list[str | Path]:
    """Command of a Prometheus that tells alerts as the stack's does, of one service."""
    (directory / "rules.yml").write_text(yaml.safe_dump(RULES))
    alerting = yaml.safe_load((HOME / "monitoring/prometheus/prometheus.yml").read_text())["alerting"]
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "alerting": alerting,
        "scrape_configs": [{"job_name": "service", "static_configs": [{"targets": [f"127.0.0.1:{service}"]}]}],
    }
    written = yaml.safe_dump(config)
    assert written.count("alertmanager:9093") == 1
    (directory / "prometheus.yml").write_text(written.replace("alertmanager:9093", f"127.0.0.1:{alerts}"))
    return [
        program, f"--config.file={directory / 'prometheus.yml'}", f"--storage.tsdb.path={directory / 'figures'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip


def test_an_alert_that_fires_reaches_the_receiver_and_so_does_its_end(
    tmp_path: Path, programs: dict[str, Path]
) -> None:
    told: list[dict[str, Any]] = []

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/alerts?for=o'clock"
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

    @retry(stop=stop_after_delay(PATIENCE_S), wait=wait_fixed(0.2), reraise=True)
    def until_told(status: str) -> dict[str, Any]:
        alerts: list[dict[str, Any]] = [alert for message in told for alert in message["alerts"]]
        found = [alert for alert in alerts if alert["status"] == status]
        assert found, f"the receiver was told {alerts}"
        return found[0]

    port, alerts, service, receiver = free_ports(4)
    argv, environment = alertmanager(tmp_path, programs, f"http://127.0.0.1:{receiver}/alerts?for=o'clock", alerts)
    with (
        serve(Receiver, receiver),
        Child("Alertmanager", argv, log=tmp_path / "alertmanager.log", env=environment),
        Child(
            "Prometheus",
            prometheus(tmp_path, programs["prometheus"], port, service, alerts),
            log=tmp_path / "prometheus.log",
        ),
    ):
        fires = until_told("firing")
        assert fires["labels"]["alertname"] == "ServiceDown"
        assert fires["annotations"]["summary"] == "The service does not answer"
        assert not [alert for message in told for alert in message["alerts"] if alert["status"] == "resolved"]
        with serve(Service, service):
            assert until_told("resolved")["fingerprint"] == fires["fingerprint"]


@pytest.mark.parametrize("url", ["nowhere", "ftp://a/", "http://"])
def test_what_is_no_address_is_refused(tmp_path: Path, programs: dict[str, Path], url: str) -> None:
    argv, environment = alertmanager(tmp_path, programs, url, 0)
    ran = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 2, ran.stderr
    assert "ALERT_WEBHOOK_URL or alertmanager.yml is not accepted: give an http or https URL" in ran.stderr


def test_without_an_address_nobody_is_told(tmp_path: Path, programs: dict[str, Path]) -> None:
    """And what is written is the file as it lies here."""
    argv, environment = alertmanager(tmp_path, programs, "", 0)
    ran = subprocess.run(
        [*argv[:1], "--version"], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "run/alertmanager.yml").read_text() == (tmp_path / "alertmanager.yml").read_text()
