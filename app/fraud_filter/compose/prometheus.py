"""Prometheus' HTTP API, as far as it is needed here (Prometheus docs, "HTTP API", stable v1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import requests

from fraud_filter.compose import secrets
from fraud_filter.compose.stack import LOCAL, Stack
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.client import read_password

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Series:
    """One series and its value now; None where that is no number."""

    labels: Labels
    value: float | None


class Prometheus:
    """A Prometheus server at an http or https URL, which may hold a user and a password."""

    def __init__(self, url: str, timeout_s: float = 30.0, authority: Path | None = None) -> None:
        """`authority`: PEM file with the authority of its certificate; None: those that this machine trusts."""
        self._timeout_s = timeout_s
        self._verify = str(authority) if authority else True
        parts = urlsplit(url.rstrip("/"))
        #: The address without user name and password.
        self.address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        self._login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None

    def instant(self, query: str) -> list[Series]:
        """The value of a PromQL expression now.

        Raises:
            FraudFilterError: nothing answers at the address as Prometheus does, or it did not accept the query.
        """
        try:
            answer = requests.get(
                f"{self.address}/api/v1/query",
                params={"query": query},
                auth=self._login,
                timeout=self._timeout_s,
                verify=self._verify,
            )
            answer.raise_for_status()
            return [_series(found) for found in answer.json()["data"]["result"]]
        except (OSError, ValueError, KeyError, TypeError) as error:  # requests' own errors are an OSError
            raise FraudFilterError(f"Prometheus at {self.address} does not answer {query}: {error}") from None


def _series(found: Any) -> Series:
    value = float(found["value"][1])
    return Series(found["metric"], value if math.isfinite(value) else None)


def find_prometheus(stack: Stack, timeout_s: float = 30.0) -> Prometheus:
    """The Prometheus of the stack.

    Raises:
        UsageError: the file with its password can't be read.
    """
    address = f"{LOCAL}:{stack.value('PROMETHEUS_PORT')}"
    if not stack.secure:
        return Prometheus(f"http://{address}", timeout_s)
    directory = Path(stack.value("SECRETS_DIR"))
    login = f"{secrets.PROMETHEUS_USER}:{read_password(directory / secrets.PROMETHEUS_PASSWORD)}"
    return Prometheus(f"https://{login}@{address}", timeout_s, directory / secrets.CA)
