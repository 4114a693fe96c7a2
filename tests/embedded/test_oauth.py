"""Logins by OAUTHBEARER on a real broker with Kafka's own validator: each of our clients, and the query."""

from __future__ import annotations

import json
import os
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs

import jwt
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from cryptography.hazmat.primitives.asymmetric import rsa

from fraud_filter.config import Settings, env_name, load
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.kafka.client import kafka_python_config, librdkafka_config
from fraud_filter.lock.group_lock import Membership
from lab.harness.broker import HOST, Broker
from lab.harness.processes import Child, free_ports
from lab.harness.workspace import Workspace
from running import until, wait_until
from serving import Quiet, serve

SECRET, SCOPE = "s3cret", "kafka"
_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


class _Provider(Quiet, BaseHTTPRequestHandler):
    """An OpenID provider's token endpoint, with one client and tokens of ten minutes."""

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        login = jwt.utils.base64url_decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
        right = login == f"filter:{SECRET}" and form["grant_type"] == ["client_credentials"]
        now = int(time.time())
        claims = {"sub": "filter", "scope": form.get("scope", [""])[0], "iat": now - 5, "exp": now + 600}
        token = jwt.encode(claims, _KEY, algorithm="RS256", headers={"kid": "k1"})
        answer = json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": 600}).encode()
        self.send_response(200 if right else 401)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(answer if right else b"{}")


def _jwks() -> str:
    def number(value: int) -> str:
        return urlsafe_b64encode(value.to_bytes((value.bit_length() + 7) // 8)).decode().rstrip("=")

    public = _KEY.public_key().public_numbers()
    key = {"kty": "RSA", "kid": "k1", "alg": "RS256", "use": "sig", "n": number(public.n), "e": number(public.e)}
    return json.dumps({"keys": [key]})


class _OAuthBroker(Broker):
    """Has a listener for tokens beside the plain one."""

    login = ""

    def _configure(self, controller_port: int) -> Path:
        properties = super()._configure(controller_port)
        self.login = self.login or f"{HOST}:{free_ports(1)[0]}"
        keys = self._workspace.path / "keys.json"
        keys.write_text(_jwks())
        prefix = "listener.name.login.oauthbearer"
        package = "org.apache.kafka.common.security.oauthbearer"
        lines = [
            f"listeners=BROKER://{self.address},LOGIN://{self.login},CONTROLLER://{HOST}:{controller_port}",
            f"advertised.listeners=BROKER://{self.address},LOGIN://{self.login}",
            "listener.security.protocol.map=BROKER:PLAINTEXT,LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "listener.name.login.sasl.enabled.mechanisms=OAUTHBEARER",
            f"{prefix}.sasl.jaas.config={package}.OAuthBearerLoginModule required;",
            f"{prefix}.sasl.server.callback.handler.class={package}.OAuthBearerValidatorCallbackHandler",
            f"sasl.oauthbearer.jwks.endpoint.url={keys.as_uri()}",
        ]
        properties.write_text("\n".join([properties.read_text(), *lines, ""]))
        return properties


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with serve(_Provider) as address:
        yield f"http://{address}/token"


@pytest.fixture(scope="module")
def settings(java_home: Path, kafka_jars: list[Path], provider: str) -> Iterator[Settings]:
    """How the one client logs in; the broker is started with them."""
    with pytest.MonkeyPatch.context() as patch, Workspace("oauth-") as workspace:
        patch.setenv("JAVA_TOOL_OPTIONS", "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls="
                 f"{(workspace.path / 'keys.json').as_uri()}")  # fmt: skip
        secret = workspace.path / "secret"
        secret.write_text(SECRET)
        broker = _OAuthBroker(workspace, java_home=java_home, jars=kafka_jars)
        with broker:
            patch.delenv("JAVA_TOOL_OPTIONS")
            yield load(
                {
                    "kafka_bootstrap_servers": broker.login,
                    "kafka_security_protocol": "SASL_PLAINTEXT",
                    "kafka_sasl_mechanism": "OAUTHBEARER",
                    "kafka_sasl_username": "filter",
                    "kafka_sasl_password_file": str(secret),
                    "kafka_oauth_token_url": provider,
                    "kafka_oauth_scope": SCOPE,
                },
                Path("/dev/null"),
            )


def test_librdkafka_logs_in(settings: Settings) -> None:
    assert AdminClient(librdkafka_config(settings)).list_topics(timeout=60).brokers


def test_the_lock_logs_in(settings: Settings) -> None:
    with closing(Membership(settings, "fraud-filter-lock-oauth", "one")) as member:
        until(lambda: member.acquire() == "", "it holds the lock", 60)


def test_a_wrong_secret_is_told(settings: Settings) -> None:
    wrong = settings.model_copy(update={"kafka_sasl_password_file": "", "kafka_sasl_username": "nobody"})
    wrong = load({**wrong.model_dump(), "kafka_sasl_password": "wrong"}, Path("/dev/null"))
    with pytest.raises(FraudFilterError, match="/token gives no token for 'nobody': 401"):
        kafka_python_config(wrong)["sasl_oauth_token_provider"].token()


def test_a_missing_address_is_told(settings: Settings) -> None:
    with pytest.raises(UsageError, match=r"kafka_oauth_token_url .* give the OpenID provider's token endpoint"):
        librdkafka_config(settings.model_copy(update={"kafka_oauth_token_url": ""}))


@pytest.mark.exhaustive  # with SCRAM it does so in test_secure
@pytest.mark.timeout(600)
def test_the_filter_reads_and_writes(settings: Settings, tmp_path: Path) -> None:
    given = settings.model_dump(include={name for name in type(settings).model_fields if name.startswith("kafka_")})
    own = {env_name(name): str(value) for name, value in given.items() if isinstance(value, str) and value}
    environment = {**os.environ, **own, "FRAUD_ENV_FILE": "/dev/null"}
    fraud_filter = [sys.executable, "-m", "fraud_filter"]
    with Child("topics", [*fraud_filter, "topics"], log=tmp_path / "topics.log", env=environment) as program:
        assert program.wait(120) == 0, program.tail()
    argv = [*fraud_filter, "run", "--mode", "real-time", "--spark-master", "local[6]", "--metrics-port", "0"]
    log = tmp_path / "run.log"
    with Child("the filter", [*argv, "--checkpoint", str(tmp_path / "c")], log=log, env=environment) as program:
        wait_until(lambda: "event=started" in log.read_text(), "the query runs", program, 240)
        producer = Producer(librdkafka_config(settings))
        producer.produce("payments", b"no JSON")
        assert producer.flush(60) == 0
        reader = Consumer({**librdkafka_config(settings), "group.id": "test", "auto.offset.reset": "earliest"})
        with closing(reader):
            reader.subscribe(["payments.rejected"])
            wait_until(lambda: reader.poll(1) is not None, "the record is rejected", program, 240)
        assert SECRET not in log.read_text()
        assert program.stop(60) == 0, program.tail()
