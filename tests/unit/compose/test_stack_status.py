"""The screen of `fraud-filter status`, and the client of Prometheus' API that asks for its figures."""

from __future__ import annotations

import http.server
import json
import socket
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from fraud_filter.compose.status import Prometheus, Readings, as_dict, figure_rows, read
from fraud_filter.errors import FraudFilterError
from serving import Quiet, serve


class _Answers(Quiet, BaseHTTPRequestHandler):
    value = "0.0042"

    def do_GET(self) -> None:
        result = [{"metric": {"mode": "continuous", "job": "standby"}, "value": [1.0, self.value]}]
        body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def answering() -> Iterator[str]:
    with serve(_Answers) as address:
        yield f"http://{address}"


def test_figures_have_units() -> None:
    rows = dict(figure_rows(Readings("continuous", 100.04, 5.0, 0.0061, 0.0462, 3, 0, 2.4, "standby", None)))
    assert rows == {
        "mode": "continuous",
        "active, standby": "standby, -",
        "records in": "100.0 /s",
        "flagged": "5.0 /s",
        "latency, last minute": "p50 6.1 ms, p99 46.2 ms",
        "lag": "3 records",
        "last commit": "2 s ago",
    }


def test_what_a_transaction_holds_back_is_shown_when_there_is_something() -> None:
    assert dict(figure_rows(Readings(lag=0, held=12)))["held back"] == "12 records of an open transaction"
    assert "held back" not in dict(figure_rows(Readings(held=0)))


def test_what_is_not_known_is_a_dash_not_zero() -> None:
    assert dict(figure_rows(Readings(p50_s=0.002)))["latency, last minute"] == "p50 2.0 ms, p99 -"
    assert dict(figure_rows(Readings()))["lag"] == "-"


def test_prometheus_is_asked(answering: str) -> None:
    each = 0.0042
    assert read(Prometheus(answering)) == Readings(
        "continuous", each, each, each, each, each, each, each, active="standby", standby="standby"
    )


def test_no_number_is_no_figure(answering: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Answers, "value", "NaN")
    assert read(Prometheus(answering)) == Readings("continuous", active="standby", standby="standby")


def test_a_prometheus_that_does_not_answer_gives_no_figures() -> None:
    assert read(Prometheus("http://127.0.0.1:1")) == Readings()


def test_programs_are_told_the_same_as_json_where_nothing_is_known() -> None:
    told = as_dict([], Readings(mode="continuous"), [("Grafana", "http://127.0.0.1:3000/  user admin")])
    assert told["ready"] is False
    assert told["services"] == []
    assert told["metrics"]["mode"] == "continuous"
    assert told["metrics"]["p50_s"] is None
    assert told["addresses"] == {"Grafana": "http://127.0.0.1:3000/"}


# -- the client of Prometheus' API: no answer, a late one, another server's


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
