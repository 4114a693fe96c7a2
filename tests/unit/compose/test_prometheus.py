"""The client of Prometheus' API: no answer, a late one, another server's. A real one answers embedded tests."""

from __future__ import annotations

import http.server
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from fraud_filter.compose.status import Prometheus
from fraud_filter.errors import FraudFilterError
from serving import serve


@pytest.fixture
def file_server(tmp_path: Path) -> Iterator[str]:
    """A web server that is no Prometheus."""
    (tmp_path / "api/v1").mkdir(parents=True)
    (tmp_path / "api/v1/query").write_text('["JSON", "of another kind"]')
    with serve(partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))) as address:
        yield f"http://{address}"


def test_an_address_is_shown_without_its_password() -> None:
    assert (
        Prometheus("https://me:secret@host.example:9090/prometheus/").address == "https://host.example:9090/prometheus"
    )


def test_nobody_answers() -> None:
    with pytest.raises(FraudFilterError, match=r"Prometheus at http://127.0.0.1:1 does not answer up: .*refused"):
        Prometheus("http://127.0.0.1:1").instant("up")


@pytest.mark.parametrize("folder", ["", "/elsewhere"])
def test_another_server_answers(file_server: str, folder: str) -> None:
    with pytest.raises(FraudFilterError, match="does not answer up"):
        Prometheus(file_server + folder).instant("up")


def test_an_answer_takes_too_long() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        prometheus = Prometheus(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.2)
        with pytest.raises(FraudFilterError, match=r"does not answer up: .*timed out"):
            prometheus.instant("up")
