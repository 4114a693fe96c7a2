"""Spark's own check of tokens: the page of a real master with the key and the token that the secure stack is given."""

from __future__ import annotations

import base64
import os
import secrets as random
import time
from collections.abc import Iterator
from pathlib import Path

import jwt
import pyspark
import pytest
import requests
from tenacity import retry, retry_if_exception_type, retry_if_result, stop_after_delay, wait_fixed

from fraud_filter.compose import secrets
from lab.harness.processes import Child, free_ports

FILTER = "org.apache.spark.ui.JWSFilter"
CLAIMS = {"sub": "healthcheck"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pages") / ".secrets"
    secrets.make(directory)
    return directory


@pytest.fixture(scope="module")
def page(made: Path, java_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the master's page; it checks tokens as `spark/entrypoint.sh` tells it."""
    directory = tmp_path_factory.mktemp("master")
    settings = directory / "spark-defaults.conf"
    key = (made / "spark-ui-key").read_text()
    settings.write_text(f"spark.ui.filters {FILTER}\nspark.{FILTER}.param.secretKey {key}\n")
    port, shown = free_ports(2)
    program = Path(pyspark.__file__).parent / "bin/spark-class"
    options = [
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--webui-port",
        str(shown),
        "--properties-file",
        str(settings),
    ]
    argv: list[str | Path] = [program, "org.apache.spark.deploy.master.Master", *options, "--properties-file", settings]
    environment = {**os.environ, "JAVA_HOME": str(java_home), "SPARK_LOCAL_IP": "127.0.0.1"}
    with Child("Spark's master", argv, log=directory / "master.log", env=environment):
        address = f"http://127.0.0.1:{shown}/json/"
        until_served(address)
        yield address


@retry(
    retry=retry_if_exception_type(requests.RequestException) | retry_if_result(requests.codes.not_found.__eq__),
    stop=stop_after_delay(60),
    wait=wait_fixed(0.2),
)
def until_served(address: str) -> int:
    """The master's server answers 404 before it has its pages."""
    return status(address, None)


def status(address: str, token: str | None) -> int:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return requests.get(address, headers=headers, timeout=10, proxies={"no_proxy": "*"}).status_code


def test_the_token_that_is_made_is_taken_and_no_other(page: str, made: Path) -> None:
    assert status(page, (made / "spark-ui-token").read_text()) == 200
    assert status(page, None) == 403
    assert status(page, "e30.e30.e30") == 403


def test_a_token_that_has_ended_is_refused(page: str, made: Path) -> None:
    key = base64.urlsafe_b64decode((made / "spark-ui-key").read_bytes())
    for seconds, answer in ((60, 200), (-60, 403)):
        assert status(page, jwt.encode({**CLAIMS, "exp": time.time() + seconds}, key, "HS256")) == answer


def test_the_token_that_is_made_ends_with_the_certificates(made: Path) -> None:
    key = base64.urlsafe_b64decode((made / "spark-ui-key").read_bytes())
    claims = jwt.decode((made / "spark-ui-token").read_text(), key, ["HS256"], options={"require": ["exp"]})
    assert claims["exp"] - time.time() == pytest.approx(secrets.LIFE_DAYS * 86_400, abs=600)


def test_what_another_key_signs_is_refused(page: str) -> None:
    """Such as that of a worker, which makes one of its own."""
    signed = jwt.encode({**CLAIMS, "exp": time.time() + 60}, random.token_bytes(32), "HS256")
    assert status(page, signed) == 403
    unsigned = jwt.encode({**CLAIMS, "exp": time.time() + 60}, "", "none")
    assert status(page, unsigned) == 403
