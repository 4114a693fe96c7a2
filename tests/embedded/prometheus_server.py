"""A real Prometheus that scrapes programs on this machine, and a browser that opens pages."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import requests
import yaml

from lab.harness.processes import Child, free_ports


def require_program(variable: str, *names: str) -> str:
    """The program that an environment variable names, or the first of `names` on PATH; none skips the test."""
    named = os.environ.get(variable)
    found = next(filter(None, map(shutil.which, [named] if named else names)), None)
    if found is None:
        pytest.skip(f"no {' or '.join(names)} on PATH, and {variable} names none")
    return found


class PrometheusServer(Child):
    """Prometheus with a scrape each second; `address` is its URL."""

    def __init__(self, program: str, directory: Path, ports: dict[str, int]) -> None:
        """`ports` gives the port to scrape for each job's name."""
        (port,) = free_ports(1)
        self.address = f"http://127.0.0.1:{port}"
        directory.mkdir()
        config = directory / "prometheus.yml"
        jobs = [
            {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]} for job, target in ports.items()
        ]
        interval = {"scrape_interval": "1s", "scrape_timeout": "1s"}
        config.write_text(yaml.safe_dump({"global": interval, "scrape_configs": jobs}))
        argv = [
            program,
            f"--config.file={config}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        super().__init__("Prometheus", argv, log=directory / "prometheus.log")

    def __enter__(self) -> PrometheusServer:
        self.start()
        return self

    def value(self, query: str) -> float | None:
        """The value of an expression with one series, now; None when there is no series, or no answer yet."""
        try:
            answer = requests.get(f"{self.address}/api/v1/query", params={"query": query}, timeout=5)
        except requests.ConnectionError:
            return None
        result = answer.json()["data"]["result"]
        return float(result[0]["value"][1]) if result else None
