"""Prometheus' HTTP API, as far as it is needed here (Prometheus docs, "HTTP API", stable v1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import requests

from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.report.window import Window

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Series:
    """Points of one series: (seconds since 1970, value), oldest first. Values that are no numbers are left out."""

    labels: Labels
    points: tuple[tuple[float, float], ...]


class Prometheus:
    """A Prometheus server, or anything with its API, at an http or https URL.

    Raises:
        UsageError: it is no such URL.
    """

    def __init__(self, url: str, timeout_s: float = 30.0, authority: Path | None = None) -> None:
        """`authority`: PEM file with the authority of its certificate; None: those that this machine trusts."""
        self._timeout_s = timeout_s
        self._verify = str(authority) if authority else True
        try:
            parts = urlsplit(url.rstrip("/"))
            complete = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # a port beyond 65535, an IPv6 address without its end
            complete = False
        if not complete:
            raise UsageError(
                f"argument --prometheus: {url!r} is not accepted: give the address of a Prometheus server, "
                "such as http://127.0.0.1:9090"
            )
        #: The address without user name and password.
        self.address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        self._login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None

    def range(self, query: str, window: Window) -> list[Series]:
        """The value of a PromQL expression over the window, a point every `window.step_s` seconds.

        Raises:
            UsageError: nothing answers at the address, or not with Prometheus' API.
            FraudFilterError: Prometheus did not accept or finish the query.
        """
        times = {"start": f"{window.start:.3f}", "end": f"{window.end:.3f}", "step": str(window.step_s)}
        return [_series(found, found["values"]) for found in self._ask("query_range", query=query, **times)]

    def instant(self, query: str, at: float | None = None) -> list[Series]:
        """The value of an expression at a time in seconds since 1970, or now; of `metric[5m]` its stored samples.

        Raises:
            UsageError: nothing answers at the address, or not with Prometheus' API.
            FraudFilterError: Prometheus did not accept or finish the query.
        """
        time = {} if at is None else {"time": f"{at:.3f}"}
        return [
            _series(found, found["values"] if "values" in found else [found["value"]])
            for found in self._ask("query", query=query, **time)
        ]

    def _ask(self, call: str, **parameters: str) -> list[Any]:
        try:
            answer = requests.get(
                f"{self.address}/api/v1/{call}",
                params=parameters,
                auth=self._login,
                timeout=self._timeout_s,
                verify=self._verify,
            )
        except requests.ReadTimeout:
            raise FraudFilterError(
                f"Prometheus at {self.address} took longer than {self._timeout_s:g} s for {parameters['query']}: "
                "give a shorter --since"
            ) from None
        except OSError as error:  # requests' own errors are such; so is a missing file with the authority
            raise UsageError(
                f"argument --prometheus: no Prometheus answered at {self.address} ({_reason(error)}): "
                "start the stack with make up, or give another address"
            ) from None
        if answer.status_code == requests.codes.unauthorized:
            raise UsageError(
                f"argument --prometheus: Prometheus at {self.address} asks for a user and a password, and did not take "
                "what it got: give http://USER:PASSWORD@HOST:PORT"
            )
        try:
            body = answer.json()
            if body["status"] == "success":
                return list(body["data"]["result"])
            told = f"{body['errorType']}: {body['error']}"
        except (ValueError, KeyError, TypeError):
            raise UsageError(
                f"argument --prometheus: what answers at {self.address} is not Prometheus "
                f"(HTTP status {answer.status_code}): give another address"
            ) from None
        raise FraudFilterError(f"Prometheus at {self.address} refused {parameters['query']}: {told}")


def _series(found: Any, values: list[Any]) -> Series:
    points = ((float(time), float(value)) for time, value in values)
    return Series(found["metric"], tuple((time, value) for time, value in points if math.isfinite(value)))


def _reason(error: BaseException) -> str:
    """The innermost cause: requests wraps what the operating system said several times."""
    while error.__context__ is not None:
        error = error.__context__
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
