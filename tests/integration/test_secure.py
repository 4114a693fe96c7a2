"""The secure stack: everything works in it, who has no right gets in nowhere, and no secret can be seen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from docker.models.containers import Container

from deployed import Deployed, make_env, run
from fraud_filter import config
from fraud_filter.compose import env_file, secrets
from fraud_filter.kafka_client import librdkafka_config
from test_restart import audited
from waiting import wait_until

#: Of its own: the other tests' stack stays as it is. `.ci/run` knows the name.
PROJECT = "fraud-filter-test-secure"
DECIDED = "sum(fraud_filter_flagged_records_total)"
#: Seconds that a broker gets to refuse a client.
REFUSED_S = 15.0
#: What can be read without being a secret.
PUBLIC = {secrets.CA, "kafka-admin.crt"}


@pytest.fixture(scope="module")
def secured(docker_engine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:  # noqa: ARG001
    env = tmp_path_factory.mktemp("secure") / ".env"
    deployed = Deployed(make_env(env, COMPOSE_PROJECT_NAME=PROJECT, FRAUD_MODE="continuous", GENERATOR_RATE="50"))
    try:
        up = deployed.call("up", "--secure", "--timeout", "500")
        assert up.returncode == 0, up.stdout
        yield deployed
    finally:
        deployed.call("down", "--volumes")


@pytest.fixture(scope="module")
def strangers(secured: Deployed) -> Iterator[list[Container]]:
    """Spark applications of the same image in containers that were given no secret; an attempt takes over a minute."""
    code = (
        "import sys; from fraud_filter import session; from fraud_filter.config import load; "
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
            started.append(
                stack.client.containers.run(
                    "fraud-filter-app:local",
                    ["python", "-c", code, json.dumps(conf)],
                    detach=True,
                    network=f"{stack.name}_default",
                    tmpfs={"/run/spark": "mode=0700,uid=10001", "/tmp": "exec"},  # noqa: S108 - the container's
                    mem_limit="1g",
                )
            )
        yield started
    finally:
        for container in started:
            container.remove(force=True)


def _settings(stack: Deployed, **changes: str) -> config.Settings:
    return config.load({"kafka_timeout_s": REFUSED_S, **changes}, env_file=stack.env)


def _nothing_is_lost(stack: Deployed, directory: Path) -> None:
    """By the audit; while the filter catches up, what it has not read yet counts as lost."""
    wait_until("nothing is lost", lambda: audited(stack, directory / "audit.json")["payments"], 240, every_s=5)


def _as(stack: Deployed, user: str, **changes: str) -> config.Settings:
    file = str(_directory(stack) / user)
    return _settings(stack, kafka_sasl_username=user, kafka_sasl_password_file=file, **changes)


def _directory(stack: Deployed) -> Path:
    return Path(env_file.read(stack.env)["SECRETS_DIR"])


def _container_output(stack: Deployed, service: str, *command: str) -> tuple[int, str]:
    (container,) = [state.container for state in stack.open().states() if state.service == service]
    code, output = container.exec_run(list(command))
    return code, output.decode(errors="replace")


def _ask_prometheus(stack: Deployed, query: str) -> float:
    password = (_directory(stack) / secrets.PROMETHEUS_PASSWORD).read_text()
    url = stack.url("PROMETHEUS_PORT", "/api/v1/query")
    answer = requests.get(url, params={"query": query}, auth=(secrets.PROMETHEUS_USER, password), timeout=5)
    answer.raise_for_status()
    return sum(float(found["value"][1]) for found in answer.json()["data"]["result"])


def _write(settings: config.Settings, topic: str) -> str:
    """What becomes of a record that this client writes: "" when it is taken."""
    said: list[str] = []
    producer = Producer(librdkafka_config(settings, message_timeout_ms=round(REFUSED_S * 1000)))
    producer.produce(topic, b"{}", on_delivery=lambda error, _: said.append(error.str() if error else ""))
    producer.flush(REFUSED_S + 5)
    return said[0]


def _read(settings: config.Settings, topic: str) -> str:
    """What becomes of an attempt to read: "" when a record comes."""
    consumer = Consumer(librdkafka_config(settings, group_id="fraud-filter-reader", auto_offset_reset="earliest"))
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(REFUSED_S)
        if message is None:
            return "nothing came"
        error = message.error()
        return error.str() if error else ""
    finally:
        consumer.close()


def _brokers(settings: config.Settings) -> int:
    return len(AdminClient(librdkafka_config(settings)).list_topics(timeout=REFUSED_S).brokers)


def _refusal(settings: config.Settings) -> str:
    """What the client says of the broker that does not take it; fails when it is taken."""
    said: list[str] = []
    admin = AdminClient(librdkafka_config(settings) | {"error_cb": lambda error: said.append(str(error))})

    def heard() -> str:
        with pytest.raises(KafkaException):
            admin.list_topics(timeout=1)
        admin.poll(1)
        return " ".join(said)

    return wait_until("the client is refused", heard, REFUSED_S)


# -- it works


@pytest.mark.usefixtures("strangers")  # they try in the meantime
def test_payments_flow_in_continuous_mode(secured: Deployed) -> None:
    assert wait_until("flagged payments", lambda: _ask_prometheus(secured, DECIDED) > 0, timeout_s=240)
    status = secured.call("status")
    assert status.returncode == 0, status.stdout
    assert "continuous" in status.stdout
    assert "kafka-access" in status.stdout


def test_prometheus_reaches_every_target(secured: Deployed) -> None:
    wait_until("all targets are up", lambda: _ask_prometheus(secured, "count(up == 0) or vector(0)") == 0)
    assert _ask_prometheus(secured, "count(up)") == len(
        ("filter", "probe", "generator", "kafka", "prometheus", "master", "worker", "driver")
    )


def test_programs_on_this_machine_work_with_what_up_wrote(secured: Deployed, tmp_path: Path) -> None:
    environment = {"FRAUD_ENV_FILE": str(secured.env)}
    _nothing_is_lost(secured, tmp_path)
    sent = run("generate", "--rate", "20", "--seconds", "1", **environment)
    assert sent.returncode == 0, sent.stdout
    probed = run("probe", "--seconds", "2", "--probe-port", "0", **environment)
    assert probed.returncode == 0, probed.stdout
    report = secured.call("report", "--since", "2m", "--output", str(tmp_path / "report.html"))
    assert report.returncode == 0, report.stdout


@pytest.mark.parametrize("mode", ["micro-batch", "async-progress", "real-time"])
def test_a_switch_to_each_other_mode_loses_nothing(secured: Deployed, tmp_path: Path, mode: str) -> None:
    switched = secured.call("switch", mode, "--timeout", "400")
    assert switched.returncode == 0, switched.stdout
    assert f" to {mode} mode in " in switched.stdout
    _nothing_is_lost(secured, tmp_path)


# -- who gets in


def test_kafka_takes_no_client_without_encryption(secured: Deployed) -> None:
    assert "brokers are down" in _refusal(_settings(secured, kafka_security_protocol="PLAINTEXT"))
    assert _brokers(_settings(secured)) == 1


def test_kafka_takes_no_client_without_a_login(secured: Deployed) -> None:
    assert "brokers are down" in _refusal(_settings(secured, kafka_security_protocol="SSL"))
    assert _brokers(_settings(secured)) == 1


def test_kafka_takes_no_wrong_password(secured: Deployed, tmp_path: Path) -> None:
    assert _brokers(_settings(secured)) == 1
    wrong = tmp_path / "wrong"
    wrong.write_text("w" * 32)
    assert "uthentication failed" in _refusal(_settings(secured, kafka_sasl_password_file=str(wrong)))


def test_a_client_does_not_take_another_broker_for_ours(secured: Deployed, tmp_path: Path) -> None:
    secrets.make(tmp_path)
    said = _refusal(_settings(secured, kafka_ssl_ca=str(tmp_path / secrets.CA)))
    assert "certificate verify failed" in said


def test_an_audit_with_a_wrong_password_says_so(secured: Deployed, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("w" * 32)
    environment = {"FRAUD_ENV_FILE": str(secured.env), "FRAUD_KAFKA_SASL_PASSWORD_FILE": str(wrong)}
    audit = run("audit", **environment)
    assert audit.returncode == 2, audit.stdout
    assert f"SASL_SSL as user {secrets.OPERATOR!r}" in audit.stdout
    assert len(audit.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("user", "topic"),
    [
        *(("kafka-probe", topic) for topic in ("payments", "payments.flagged", "payments.rejected")),
        *(("kafka-generator", topic) for topic in ("payments.flagged", "payments.rejected")),
        *((secrets.OPERATOR, topic) for topic in ("payments.flagged", "payments.rejected")),
        ("kafka-filter", "payments"),
    ],
)
def test_nobody_writes_what_is_not_theirs_to_write(secured: Deployed, user: str, topic: str) -> None:
    assert "authorization failed" in _write(_as(secured, user), topic).lower()


@pytest.mark.parametrize(
    ("user", "topic"),
    [
        *(("kafka-generator", topic) for topic in ("payments", "payments.flagged", "payments.rejected")),
        *(("kafka-filter", topic) for topic in ("payments.flagged", "payments.rejected")),
        ("kafka-probe", "payments"),
    ],
)
def test_nobody_reads_what_is_not_theirs_to_read(secured: Deployed, user: str, topic: str) -> None:
    assert "authorization failed" in _read(_as(secured, user), topic).lower()


def test_the_operator_reads_and_writes_payments(secured: Deployed) -> None:
    settings = _as(secured, secrets.OPERATOR)
    assert _write(settings, "payments") == ""  # it is rejected by the filter, as no payment
    assert _read(settings, "payments") == ""


def test_nobody_but_the_administrator_makes_topics_and_rights(secured: Deployed) -> None:
    admin = AdminClient(librdkafka_config(_settings(secured)))
    (made,) = admin.create_topics([NewTopic("more", 1)]).values()
    with pytest.raises(KafkaException, match="uthorization failed"):
        made.result(REFUSED_S)
    access = run("access", "--passwords", str(_directory(secured)), FRAUD_ENV_FILE=str(secured.env))
    assert access.returncode == 1, access.stdout
    assert "did not change their users and rights" in access.stdout


def test_the_administrator_s_listener_wants_a_certificate(secured: Deployed) -> None:
    """Asked from inside the stack's network: it is not published."""
    code, output = _container_output(
        secured, "generator", "fraud-filter", "topics",
        "--kafka-bootstrap-servers", "kafka:9094", "--kafka-timeout-s", "5",
    )  # fmt: skip
    assert code in (1, 2), output
    assert "exists" not in output


def test_spark_s_master_refuses_an_application_without_the_secret(
    secured: Deployed, strangers: list[Container]
) -> None:
    """The master's own list has the filter, and neither of them."""
    for stranger in strangers:
        assert stranger.wait(timeout=300)["StatusCode"] == 1
        assert "no session at 'spark://spark-master:7077'" in stranger.logs().decode()
    code, state = _container_output(secured, "spark-master", "healthcheck", "get", "8080", "/json/")
    assert code == 0
    known = json.loads(state)
    assert {application["name"] for application in known["activeapps"] + known["completedapps"]} == {"fraud-filter"}


@pytest.mark.parametrize(
    "page", ["spark-master:8080/json/", "spark-worker:8081/", "fraud-filter:4040/api/v1/applications"]
)
def test_spark_s_pages_want_a_token(secured: Deployed, page: str) -> None:
    ask = "import requests, sys; print(requests.get(sys.argv[1], headers=eval(sys.argv[2]), timeout=10).status_code)"
    token = (_directory(secured) / "spark-ui-token").read_text()
    for value, status in (("", "403"), ("Bearer e30.e30.e30", "403"), (f"Bearer {token}", "200")):
        headers = {"Authorization": value} if value else {}
        code, output = _container_output(secured, "probe", "python", "-c", ask, f"http://{page}", str(headers))
        assert (code, output.strip()) == (0, status)


def test_only_what_asks_for_a_login_is_published(secured: Deployed) -> None:
    published = {state.service for state in secured.open().states() if state.container.ports and any(
        state.container.ports.values())}  # fmt: skip
    assert published <= {"kafka", "prometheus", "grafana"}
    assert {"kafka", "prometheus"} <= published


def test_prometheus_asks_for_a_password(secured: Deployed, tmp_path: Path) -> None:
    url = secured.url("PROMETHEUS_PORT", "/api/v1/query?query=up")
    assert requests.get(url, timeout=5).status_code == 401
    assert requests.get(url, auth=(secrets.PROMETHEUS_USER, "wrong"), timeout=5).status_code == 401
    bare = secured.url("PROMETHEUS_PORT", "")
    report = secured.call("report", "--prometheus", bare, "--output", str(tmp_path / "report.html"))
    assert report.returncode == 2
    assert "asks for a user and a password" in report.stdout


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
    get = (
        "import requests, sys; ask = lambda path: requests.get('http://fraud-filter:4040' + path, timeout=20, "
        "headers={'Authorization': 'Bearer ' + sys.argv[1]}).text; "
        "app = requests.models.complexjson.loads(ask('/api/v1/applications'))[0]['id']; "
        "print(ask('/environment/'), ask('/SQL/execution/?id=0'), ask('/StreamingQuery/'), "
        "ask(f'/api/v1/applications/{app}/environment'), ask(f'/api/v1/applications/{app}/sql?details=true'))"
    )
    token = (_directory(secured) / "spark-ui-token").read_text()
    code, pages = _container_output(secured, "probe", "python", "-c", get, token)
    assert code == 0, pages
    assert "spark.authenticate.secret" in pages
    for name in ("kafka-filter", "spark-secret", "spark-ui-key", "spark-ui-token"):
        assert (_directory(secured) / name).read_text() not in pages, name


def test_secrets_are_their_owner_s_alone(secured: Deployed) -> None:
    assert _directory(secured).stat().st_mode & 0o077 == 0
    assert secured.env.stat().st_mode & 0o077 == 0


# -- last: it changes the secrets


def test_new_secrets_are_made_and_used_when_the_old_are_removed(secured: Deployed, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_bytes((_directory(secured) / secrets.OPERATOR).read_bytes())
    for name in secrets.FILES:
        (_directory(secured) / name).unlink()
    up = secured.call("up", "--timeout", "500")
    assert up.returncode == 0, up.stdout
    assert _brokers(_settings(secured)) == 1
    assert "uthentication failed" in _refusal(_settings(secured, kafka_sasl_password_file=str(old)))
    before = _ask_prometheus(secured, DECIDED)
    assert wait_until("more flagged payments", lambda: _ask_prometheus(secured, DECIDED) > before, timeout_s=240)
    _nothing_is_lost(secured, tmp_path)
