"""Prints the Secret `spark`: what Spark's programs share, the key of their pages, and a token for the healthchecks.

    .venv/bin/python deploy/kubernetes/spark_secret.py | kubectl apply -f -

Each call makes new ones: pods that have the old ones must then be replaced, all of them.
"""

from __future__ import annotations

import base64
import json
import secrets

import jwt

_BYTES = 32


def make() -> dict[str, object]:
    """The Secret. Its token has no end, as nothing would tell of one that comes near."""
    key = secrets.token_bytes(_BYTES)
    files = {
        "spark-secret": secrets.token_urlsafe(_BYTES),
        "spark-ui-key": base64.urlsafe_b64encode(key).decode(),
        "spark-ui-token": jwt.encode({"sub": "healthcheck"}, key, "HS256"),
    }
    place = {"name": "spark", "namespace": "fraud-filter"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": place, "stringData": files}


if __name__ == "__main__":
    print(json.dumps(make()))  # noqa: T201 - kubectl reads it
