"""The report about known holes: asked of a local server that plays osv.dev, and of one that is not there."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fraud_filter.home import HOME

#: They judge a report that each night makes, and no change of the code.
pytestmark = pytest.mark.exhaustive

HOLE = {
    "id": "PYSEC-2099-1",
    "summary": "a hole",
    "affected": [
        {
            "package": {"name": "jinja2", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99.0"}]}],
        }
    ],
}


class Advisories(BaseHTTPRequestHandler):
    """osv.dev's answers."""

    holes: dict[str, object]

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["package"]["name"]
        body = json.dumps({"vulns": [self.holes[asked]]} if asked in self.holes else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def advisories() -> Iterator[str]:
    Advisories.holes = {}
    with ThreadingHTTPServer(("127.0.0.1", 0), Advisories) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
        server.shutdown()


def scan(service: str) -> str:
    """What the report says of our own lock."""
    asked = {"PIP_AUDIT_VULNERABILITY_SERVICE": "osv", "PIP_AUDIT_OSV_URL": service, "PIP_NO_CACHE_DIR": "1"}
    done = subprocess.run([HOME / ".ci/scan"], env={**os.environ, **asked}, capture_output=True, text=True, check=True)
    ours = re.search(r"\Arequirements\.lock:.*?(?=^app/)", done.stdout, re.MULTILINE | re.DOTALL)
    assert ours, done.stdout
    return ours[0]


def test_known_hole_is_named_with_its_fix(advisories: str) -> None:
    Advisories.holes = {"jinja2": HOLE}
    report = scan(advisories)
    assert re.search(r"^jinja2 +3\.\S+ +PYSEC-2099-1 +99\.0$", report, re.MULTILINE), report


def test_no_known_hole_is_said(advisories: str) -> None:
    assert scan(advisories) == "requirements.lock: no known holes\n"


def test_service_that_can_not_be_reached_is_no_clean_result() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    report = scan(f"http://127.0.0.1:{port}/")
    assert report.startswith("requirements.lock: NOT scanned: ")
    assert report.count("\n") == 1
