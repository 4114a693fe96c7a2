"""The secure stack: everything works in it, who has no right gets in nowhere, and no secret can be seen."""

from __future__ import annotations

import base64
import json
import re
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest
import requests
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from docker.models.containers import Container

import beside
from audits import nothing_is_lost
from deployed import Deployed, run
from fraud_filter import config
from fraud_filter.compose import env_file, secrets
from fraud_filter.compose.stack import execute
from fraud_filter.compose.status import Prometheus, find_prometheus
from fraud_filter.errors import FraudFilterError
from fraud_filter.home import HOME
from fraud_filter.kafka.client import librdkafka_config
from fraud_filter.metrics.filter_metrics import certificate_ends
from waiting import wait_until

DECIDED = "sum(fraud_filter_flagged_records_total)"
#: Seconds that a broker gets to refuse a client.
REFUSED_S = 60.0
#: What can be read without being a secret.
PUBLIC = {secrets.CA, "kafka-admin.crt"}
#: Prints the status of a page, or that nothing listens there.
STATUS = """
import requests, sys
try:
    print(requests.get(sys.argv[1], headers=eval(sys.argv[2]), timeout=30).status_code)
except requests.ConnectionError:
    print("closed")
"""


@pytest.fixture(scope="module")
def strangers(secured: Deployed) -> Iterator[list[Container]]:
    """Spark applications of the same image in containers that were given no secret; an attempt takes over a minute."""
    code = (
        "import sys; from fraud_filter.config import load; from fraud_filter.spark import session; "
        "session.start(load({'query_name': 'stranger', 'spark_master': 'spark://spark-master:7077', "
        "'spark_conf': sys.argv[1]}))"
    )
    stack = secured.open()
    started: list[Container] = []
    try:
        for conf in (
            {"spark.authenticate": "false", "spark.network.crypto.enabled": "false"},
            {"spark.authenticate.secret": "wrong"},
        ):
            spark = f"{stack.name}_spark"
            started.append(beside.start(stack, spark, "python", "-c", code, json.dumps(conf)))
        yield started
    finally:
        for container in started:
            container.remove(force=True)


def _settings(stack: Deployed, **changes: str) -> config.Settings:
    return config.load({"kafka_timeout_s": REFUSED_S, **changes}, env_file=stack.env)


def _directory(stack: Deployed) -> Path:
    return Path(env_file.read(stack.env)["SECRETS_DIR"])


def _container_output(stack: Deployed, service: str, *command: str) -> tuple[int, str]:
    (container,) = [state.container for state in stack.open().states() if state.service == service]
    code, output = execute(container, *command)
    return code, output.decode(errors="replace")


def _in_spark_s_network(stack: Deployed, *program: str) -> str:
    """What a Python program prints there."""
    now = stack.open()
    return beside.end(beside.start(now, f"{now.name}_spark", "python", "-c", *program))


def _ask_prometheus(stack: Deployed, query: str) -> float:
    return sum(series.value or 0 for series in find_prometheus(stack.open()).instant(query))


def _is_refused(settings: config.Settings, words: str) -> None:
    """Waits until the client says so of the broker that does not take it; fails when it is taken."""
    said: list[str] = []
    admin = AdminClient(librdkafka_config(settings) | {"error_cb": lambda error: said.append(str(error))})

    def heard() -> bool:
        with pytest.raises(KafkaException):
            admin.list_topics(timeout=1)
        admin.poll(1)
        assert any(words in each for each in said), said
        return True

    wait_until("the client is refused", heard, REFUSED_S)


# -- it works


@pytest.mark.usefixtures("strangers")  # they try in the meantime
def test_payments_flow_in_continuous_mode(secured: Deployed) -> None:
    assert wait_until("flagged payments", lambda: _ask_prometheus(secured, DECIDED) > 0, timeout_s=240)

    def shown() -> str:
        status = secured.call("status")
        assert status.returncode == 0, status.stdout
        assert "continuous" in status.stdout, status.stdout
        return status.stdout

    assert "kafka-access" in wait_until("all is healthy", shown, every_s=3)


def test_prometheus_reaches_every_target(secured: Deployed) -> None:
    targets = ("filter", "probe", "generator", "kafka", "prometheus", "alertmanager", "master", "worker", "driver")
    both = "count(up)", "sum(up)"
    wait_until("all targets are up", lambda: {_ask_prometheus(secured, each) for each in both} == {len(targets)})


def test_programs_on_this_machine_work_with_what_up_wrote(secured: Deployed) -> None:
    environment = {"FRAUD_ENV_FILE": str(secured.env)}
    nothing_is_lost(secured)
    sent = run("generate", "--rate", "20", "--seconds", "1", **environment)
    assert sent.returncode == 0, sent.stdout
    probed = run("probe", "--seconds", "2", "--probe-port", "0", **environment)
    assert probed.returncode == 0, probed.stdout


def test_a_switch_to_spark_s_other_reader_loses_nothing(secured: Deployed) -> None:
    """Continuous mode has one of its own; that of real-time mode is micro-batches' too."""
    switched = secured.call("rollout", "--mode", "real-time", "--timeout", "400")
    assert switched.returncode == 0, switched.stdout
    assert " to real-time mode in " in switched.stdout
    nothing_is_lost(secured)


# -- who gets in


def test_a_client_does_not_take_another_broker_for_ours(secured: Deployed, tmp_path: Path) -> None:
    secrets.make(tmp_path)
    _is_refused(_settings(secured, kafka_ssl_ca=str(tmp_path / secrets.CA)), "certificate verify failed")


def test_an_audit_with_a_wrong_password_says_so(secured: Deployed, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("w" * 32)
    environment = {"FRAUD_ENV_FILE": str(secured.env), "FRAUD_KAFKA_SASL_PASSWORD_FILE": str(wrong)}
    audit = run("audit", **environment)
    assert audit.returncode == 2, audit.stdout
    assert f"SASL_SSL as user {secrets.OPERATOR!r}" in audit.stdout
    assert len(audit.stdout.splitlines()) == 1


def test_spark_s_master_refuses_an_application_without_the_secret(
    secured: Deployed, strangers: list[Container]
) -> None:
    """The master's own list has the filter, and neither of them."""
    for stranger in strangers:
        assert stranger.wait(timeout=300)["StatusCode"] == 1
        assert "'spark://spark-master:7077' gives no session" in stranger.logs().decode()
    code, state = _container_output(secured, "spark-master", "healthcheck", "get", "8080", "/json/")
    assert code == 0
    known = json.loads(state)
    assert {application["name"] for application in known["activeapps"] + known["completedapps"]} == {"fraud-filter"}


def _page(stack: Deployed, page: str, token: str) -> str:
    """The status of a page that another container in Spark's network asks for."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return _in_spark_s_network(stack, STATUS, f"http://{page}", str(headers)).strip()


def test_the_master_s_page_wants_a_token_that_has_not_ended(secured: Deployed) -> None:
    page, directory = "spark-master:8080/json/", _directory(secured)
    key = base64.urlsafe_b64decode((directory / "spark-ui-key").read_bytes())
    ended = jwt.encode({"sub": "healthcheck", "exp": time.time() - 60}, key, "HS256")
    for token, status in (
        ("", "403"),
        ("e30.e30.e30", "403"),
        (ended, "403"),
        ((directory / "spark-ui-token").read_text(), "200"),
    ):
        assert _page(secured, page, token) == status, token


def test_no_page_takes_what_a_worker_can_sign(secured: Deployed) -> None:
    """What a worker checks tokens with is its own; the driver, which tells executors its settings, has no page."""
    code, settings = _container_output(secured, "spark-worker", "cat", "/run/spark/spark-defaults.conf")
    assert code == 0
    (key,) = re.findall(r"(?m)^spark\.org\.apache\.spark\.ui\.JWSFilter\.param\.secretKey (\S+)$", settings)
    directory = _directory(secured)
    assert key != (directory / "spark-ui-key").read_text()
    signed = jwt.encode({"sub": "healthcheck", "exp": time.time() + 600}, base64.urlsafe_b64decode(key), "HS256")
    assert _page(secured, "spark-worker:8081/", signed) == "200"
    assert _page(secured, "spark-master:8080/json/", signed) == "403"
    assert _page(secured, "spark-worker:8081/", (directory / "spark-ui-token").read_text()) == "403"
    assert _page(secured, "fraud-filter:4040/api/v1/applications", signed) == "closed"
    code, files = _container_output(
        secured, "spark-worker", "sh", "-c", "cat /run/secrets/*; env; cat /proc/*/cmdline /proc/*/environ 2>/dev/null"
    )
    assert (directory / "spark-ui-token").read_text() in files
    assert (directory / "spark-ui-key").read_text() not in files


def test_prometheus_speaks_tls_with_the_stack_s_certificate_alone(secured: Deployed) -> None:
    url = secured.url("PROMETHEUS_PORT", "/-/ready")
    assert requests.get(url, timeout=30).status_code == 400  # "Client sent an HTTP request to an HTTPS server."
    with pytest.raises(FraudFilterError, match="certificate verify failed"):
        Prometheus(url.replace("http:", "https:").partition("/-")[0]).instant("up")


# -- what can be seen


def test_no_secret_can_be_seen(secured: Deployed) -> None:
    """In what Docker tells of the containers, their logs, the programs' command lines and `fraud-filter config`."""
    stack = secured.open()
    values = env_file.read(secured.env)
    hidden = {name: (_directory(secured) / name).read_text() for name in secrets.FILES if name not in PUBLIC}
    hidden |= {name: values[name] for name in env_file.SECRETS}
    seen = {
        "config": run("config", FRAUD_ENV_FILE=str(secured.env)).stdout,
        "logs": stack.compose("logs").stdout,
        "status": secured.call("status").stdout,
    }
    for state in stack.states():
        seen[f"{state.service}: docker inspect"] = json.dumps(state.container.attrs)
        if state.state == "running":
            seen[f"{state.service}: docker top"] = json.dumps(state.container.top(ps_args="-eo pid,args"))
    assert "FRAUD_KAFKA_SASL_PASSWORD=\n" in seen["config"]
    assert "event=started" in seen["logs"]
    for name, secret in hidden.items():
        for line in secret.splitlines():
            if not line.startswith("-----"):
                assert [place for place, text in seen.items() if line in text] == [], name


def test_spark_s_pages_show_no_secret(secured: Deployed) -> None:
    """The master's; the driver has none, and nobody has a token for the workers'."""
    pages = ""
    for path in ("/", "/json/", "/environment/", "/metrics/json/"):
        code, page = _container_output(secured, "spark-master", "healthcheck", "get", "8080", path)
        pages += page if code == 0 else ""
    assert "spark.authenticate.secret" in pages
    for name in ("kafka-filter", "spark-secret", "spark-ui-key", "spark-ui-token"):
        assert (_directory(secured) / name).read_text() not in pages, name


# -- last: it changes the secrets


def test_new_secrets_are_made_and_used_when_the_old_are_removed_or_end(secured: Deployed, tmp_path: Path) -> None:
    directory, old = _directory(secured), tmp_path / "old"
    old.write_bytes((directory / secrets.OPERATOR).read_bytes())
    for name in set(secrets.FILES) - {*secrets.CERTIFICATES, "spark-ui-key", "spark-ui-token"}:
        (directory / name).unlink()
    subprocess.run([HOME / "kafka/certificates", directory, str(secrets.RENEW_DAYS - 1)], check=True)
    up = secured.call("up", "--timeout", "500")
    assert up.returncode == 0, up.stdout
    assert f"renewed: {secrets.RENEW_DAYS - 1} days are left" in up.stdout
    for port in ("KAFKA_PORT", "PROMETHEUS_PORT"):
        served = tmp_path / f"{port}.crt"
        served.write_text(ssl.get_server_certificate(("127.0.0.1", int(secured.open().value(port)))))
        assert certificate_ends(served)[0] - time.time() > 86_400 * (secrets.LIFE_DAYS - 1), port
    assert len(AdminClient(librdkafka_config(_settings(secured))).list_topics(timeout=REFUSED_S).brokers) == 1
    _is_refused(_settings(secured, kafka_sasl_password_file=str(old)), "uthentication failed")
    before = _ask_prometheus(secured, DECIDED)
    # The new probe counts from 0; until it is scraped, Prometheus answers with the count of the old one.
    wait_until("flagged payments", lambda: 0 < _ask_prometheus(secured, DECIDED) != before, timeout_s=240)
    nothing_is_lost(secured)
