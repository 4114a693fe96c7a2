"""Tokens of an OpenID provider for kafka-python; the other clients fetch them by themselves."""

from __future__ import annotations

import threading
import time

import requests
from kafka.net.sasl.oauth import AbstractTokenProvider

from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError

#: Share of a token's life after which another one is fetched, as Kafka's own clients do.
_USED = 0.8


class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # the library has no types
    """Fetched with the id and the secret of a client; each is used for most of its life."""

    def __init__(self, settings: Settings, url: str, secret: str) -> None:
        """`url`: the token endpoint."""
        super().__init__()
        self._url = url
        self._form = {"grant_type": "client_credentials"}
        if settings.kafka_oauth_scope:
            self._form["scope"] = settings.kafka_oauth_scope
        self._client = (settings.kafka_sasl_username, secret)
        self._timeout_s = settings.kafka_timeout_s
        self._lock = threading.Lock()
        self._token, self._until = "", 0.0

    def token(self) -> str:
        """The token to log in with.

        Raises:
            FraudFilterError: the provider gives none.
        """
        with self._lock:
            if time.monotonic() >= self._until:
                self._fetch()
            return self._token

    def _fetch(self) -> None:
        asked = time.monotonic()
        try:
            answer = requests.post(self._url, data=self._form, auth=self._client, timeout=self._timeout_s)
            answer.raise_for_status()
            said = answer.json()
            self._token, life_s = str(said["access_token"]), float(said.get("expires_in", 0))
        except (requests.RequestException, KeyError, ValueError) as error:
            raise FraudFilterError(f"{self._url} gives no token for {self._client[0]!r}: {error}") from None
        self._until = asked + life_s * _USED
