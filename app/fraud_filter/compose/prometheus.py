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
            UsageError: nothing answers at the address, or not with Prometheus' API.
            FraudFilterError: Prometheus did not accept or finish the query.
        """
        try:
            answer = requests.get(
                f"{self.address}/api/v1/query",
                params={"query": query},
                auth=self._login,
                timeout=self._timeout_s,
                verify=self._verify,
            )
        except requests.ReadTimeout:
            raise FraudFilterError(
                f"Prometheus at {self.address} took longer than {self._timeout_s:g} s for {query}"
            ) from None
        except OSError as error:  # requests' own errors are such; so is a missing file with the authority
            raise UsageError(
                f"no Prometheus answered at {self.address} ({_reason(error)}): `fraud-filter up` starts the stack's"
            ) from None
        if answer.status_code == requests.codes.unauthorized:
            raise UsageError(
                f"Prometheus at {self.address} asks for a user and a password, and did not take what it got"
            )
        try:
            body = answer.json()
            if body["status"] == "success":
                return [_series(found) for found in body["data"]["result"]]
            told = f"{body['errorType']}: {body['error']}"
        except (ValueError, KeyError, TypeError):
            raise UsageError(
                f"what answers at {self.address} is not Prometheus (HTTP status {answer.status_code})"
            ) from None
        raise FraudFilterError(f"Prometheus at {self.address} refused {query}: {told}")


def _series(found: Any) -> Series:
    value = float(found["value"][1])
    return Series(found["metric"], value if math.isfinite(value) else None)


def _reason(error: BaseException) -> str:
    """The innermost cause: requests wraps what the operating system said several times."""
    while error.__context__ is not None:
        error = error.__context__
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
