"""Pages of programs on this machine or in this network of containers: asked for without any proxy."""

from __future__ import annotations

import requests


def get(url: str, timeout_s: float) -> requests.Response:
    """The answer to a GET, whatever HTTP_PROXY says: no proxy knows what listens here.

    Raises:
        requests.RequestException: there is none within `timeout_s` seconds.
    """
    with requests.Session() as session:
        session.trust_env = False
        return session.get(url, timeout=timeout_s)
