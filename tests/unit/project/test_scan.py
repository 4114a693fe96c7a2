"""The report about known holes says what it could not ask."""

from __future__ import annotations

import os
import re
import socket
import subprocess

import pytest

from fraud_filter.home import HOME

#: They judge a report that each night makes, and no change of the code.
pytestmark = pytest.mark.exhaustive


def scan(service: str) -> str:
    """What the report says of our own lock."""
    asked = {"PIP_AUDIT_VULNERABILITY_SERVICE": "osv", "PIP_AUDIT_OSV_URL": service, "PIP_NO_CACHE_DIR": "1"}
    done = subprocess.run([HOME / ".ci/scan"], env={**os.environ, **asked}, capture_output=True, text=True, check=True)
    ours = re.search(r"\Arequirements\.lock:.*?(?=^app/)", done.stdout, re.MULTILINE | re.DOTALL)
    assert ours, done.stdout
    return ours[0]


def test_service_that_can_not_be_reached_is_no_clean_result() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    report = scan(f"http://127.0.0.1:{port}/")
    assert report.startswith("requirements.lock: NOT scanned: ")
    assert report.count("\n") == 1
