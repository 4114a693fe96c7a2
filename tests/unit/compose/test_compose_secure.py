"""The secure stack as it is written down, and how it is turned on and off."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from composed import ComposeLoader
from fraud_filter import config
from fraud_filter.compose import env_file, secrets
from fraud_filter.compose.stack import Stack
from fraud_filter.compose.status import addresses, find_prometheus
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME
from fraud_filter.kafka.access import load_users

BASE: dict[str, Any] = yaml.safe_load(env_file.COMPOSE_FILE.read_text())["services"]
SECURE: dict[str, Any] = yaml.load(env_file.SECURE_FILE.read_text(), ComposeLoader)  # noqa: S506 - a SafeLoader
SERVICES: dict[str, Any] = SECURE["services"]
_CA = secrets.CA
BROKERS = ("kafka", "kafka-2", "kafka-3")
#: What each service is given, and nothing else.
GIVEN = {
    **{name: {_CA, "kafka-broker.pem"} for name in BROKERS},
    "kafka-access": {
        *(_CA, "kafka-admin.crt", "kafka-admin.key"),
        *("kafka-filter", "kafka-generator", "kafka-probe", "kafka-operator"),
    },
    "kafka-init": {_CA, "kafka-admin.crt", "kafka-admin.key"},
    "spark-master": {"spark-secret", "spark-ui-key", "spark-ui-token"},
    # No key: what checks a token can sign one.
    "spark-worker": {"spark-secret", "spark-ui-token", _CA, "kafka-filter"},
    "fraud-filter": {"spark-secret", _CA, "kafka-filter"},
    "standby-worker": {"spark-secret", "spark-ui-token", _CA, "kafka-filter"},
    "standby": {"spark-secret", _CA, "kafka-filter"},
    "probe": {_CA, "kafka-probe"},
    "generator": {_CA, "kafka-generator"},
    "prometheus": {"prometheus-web.yml", "prometheus-password", "prometheus.pem", _CA},
    "grafana": {"grafana-password", "grafana.pem", "prometheus-password", _CA},
}


def given(service: str) -> set[str]:
    return {secret if isinstance(secret, str) else secret["source"] for secret in SERVICES[service]["secrets"]}


def test_it_changes_every_service_but_alertmanager_and_adds_one() -> None:
    """Alertmanager is given no secret of the stack, and only Prometheus reaches it."""
    assert set(SERVICES) == {*BASE, "kafka-access"} - {"alertmanager"} == set(GIVEN)
    assert [name for name, service in BASE.items() if "alerts" in service["networks"]] == ["prometheus", "alertmanager"]
    assert "ports" not in BASE["alertmanager"]


@pytest.mark.parametrize("service", GIVEN)
def test_each_service_gets_the_secrets_that_it_needs(service: str) -> None:
    assert given(service) == GIVEN[service]
    assert SERVICES[service]["labels"] == {"fraud-filter.secrets": "${SECRETS_VERSION:?see docs/security.md}"}


def test_every_secret_is_a_file_that_is_made() -> None:
    assert set(SECURE["secrets"]) == set(secrets.FILES)
    for name, source in SECURE["secrets"].items():
        assert source == {"file": f"${{SECRETS_DIR:?see docs/security.md}}/{name}"}


@pytest.mark.parametrize("service", SERVICES)
def test_no_secret_is_in_the_environment(service: str) -> None:
    environment = SERVICES[service].get("environment", {})
    for name, value in environment.items():
        if re.search("SECRET|PASSWORD|KEY", name):
            assert value == "" or value.removeprefix("/run/secrets/") in GIVEN[service], name
    emptied = {name for name in BASE.get(service, {}).get("environment", {}) if name in env_file.SECRETS}
    assert all(environment[name] == "" for name in emptied)


def test_the_added_service_is_locked_down_as_the_others() -> None:
    service = SERVICES["kafka-access"]
    for name in ("cap_drop", "security_opt", "read_only", "init", "logging", "restart", "pull_policy", "image"):
        assert service[name] == BASE["kafka-init"][name], name
    for name in ("mem_limit", "cpus", "pids_limit", "networks"):
        assert service[name] == BASE["kafka-init"][name], name


def test_each_client_of_kafka_is_a_user_of_its_own() -> None:
    users = {user.name for user in load_users(config.Settings(_env_file=None))}  # type: ignore[call-arg]
    named = {}
    for service in ("fraud-filter", "probe", "generator"):
        environment = SERVICES[service]["environment"]
        named[service] = environment["FRAUD_KAFKA_SASL_USERNAME"]
        assert environment["FRAUD_KAFKA_SASL_PASSWORD_FILE"] == f"/run/secrets/{named[service]}"
        assert environment["FRAUD_KAFKA_SECURITY_PROTOCOL"] == "SASL_SSL"
    assert len(set(named.values())) == len(named)
    assert {*named.values(), secrets.OPERATOR} == users


@pytest.mark.parametrize("brokers", ["1", "3"])
def test_prometheus_takes_these_files(promtool: str, tmp_path: Path, brokers: str) -> None:
    secrets.make(tmp_path / ".secrets")

    def placed(file: Path) -> Path:
        target = tmp_path / file.name
        target.write_text(file.read_text().replace("/run/secrets", str(tmp_path / ".secrets")))
        return target

    for name in ("prometheus.yml", "secure/itself.yml"):
        placed(HOME / "monitoring/prometheus" / name)
    shutil.copy(HOME / f"monitoring/prometheus/brokers/{brokers}.yml", tmp_path / "kafka.yml")
    shutil.copytree(HOME / "monitoring/prometheus/rules", tmp_path / "rules")
    web = placed(tmp_path / ".secrets/prometheus-web.yml")
    for words in (
        ["check", "config", "--lint=all", "--lint-fatal", str(tmp_path / "prometheus.yml")],
        ["check", "web-config", str(web)],
    ):
        done = subprocess.run([promtool, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


# -- on and off


def test_on_writes_how_programs_here_get_in_and_off_takes_it_away(stack: Stack, tmp_path: Path) -> None:
    before = stack.env.read_text()
    secrets.switch(stack, secure=True)
    secrets.prepare(stack)
    assert stack.secure
    assert stack.env.stat().st_mode & 0o077 == 0
    settings = config.load(env_file=stack.env)
    assert settings.kafka_security_protocol == "SASL_SSL"
    assert Path(settings.kafka_sasl_password_file) == tmp_path / ".secrets" / secrets.OPERATOR
    assert [word for word in stack.command("up") if word.endswith(".yml")] == [
        str(env_file.COMPOSE_FILE),
        str(env_file.SECURE_FILE),
    ]
    assert not any(
        (tmp_path / ".secrets" / name).read_text().strip() in stack.env.read_text() for name in secrets.FILES
    )

    secrets.switch(stack, secure=False)
    kept = f"SECRETS_DIR={tmp_path / '.secrets'}\n"  # a later one finds them again
    assert stack.env.read_text() == before + kept
    assert not stack.secure
    assert config.load(env_file=stack.env).kafka_security_protocol == "PLAINTEXT"


def test_a_second_time_changes_nothing(stack: Stack) -> None:
    secrets.switch(stack, secure=True)
    secrets.prepare(stack)
    before = stack.env.read_text()
    secrets.switch(stack, secure=True)
    secrets.prepare(stack)
    assert stack.env.read_text() == before


def test_the_other_stack_needs_no_secrets(stack: Stack, tmp_path: Path) -> None:
    secrets.prepare(stack)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [".env"]


def test_a_missing_compose_file_is_named(stack: Stack) -> None:
    stack.change("COMPOSE_FILE", "docker-compose.yml:other.yml")
    with pytest.raises(UsageError, match=r"COMPOSE_FILE: there is no .*other\.yml"):
        _ = stack.secure


def test_prometheus_is_asked_with_its_password_which_is_not_shown(stack: Stack) -> None:
    plain = find_prometheus(stack).address
    secrets.switch(stack, secure=True)
    secrets.prepare(stack)
    password = (Path(stack.value("SECRETS_DIR")) / secrets.PROMETHEUS_PASSWORD).read_text()
    secured = find_prometheus(stack)
    assert secured.address == plain.replace("http:", "https:")
    assert password not in secured.address
    assert secured._login == (secrets.PROMETHEUS_USER, password)
    assert secured._verify == str(Path(stack.value("SECRETS_DIR")) / _CA)


def test_only_what_is_published_is_shown(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stack, "states", lambda _: [])
    secrets.switch(stack, secure=True)
    secrets.prepare(stack)
    assert [name for name, _ in addresses(stack)] == ["Kafka", "Prometheus", "passwords"]


@pytest.mark.usefixtures("compose")
def test_compose_makes_one_of_both_files(stack: Stack) -> None:
    secrets.switch(stack, secure=True)
    secrets.prepare(stack)
    known = {*stack.values, "COMPOSE_FILE"}
    clean = {name: value for name, value in os.environ.items() if name not in known}
    profiles = [word for name in ("grafana", "standby", "brokers") for word in ("--profile", name)]
    command = stack.command(*profiles, "config", "--format", "json")
    done = subprocess.run(command, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    services = json.loads(done.stdout)["services"]
    assert set(services) == {*SERVICES, "alertmanager"}
    assert {name for name, service in services.items() if service.get("ports")} == {*BROKERS, "prometheus", "grafana"}
    for name in env_file.SECRETS:
        assert stack.values[name] not in done.stdout
    assert set(services["kafka-init"]["depends_on"]) == {*BROKERS, "kafka-access"}
    sources = [volume["source"] for volume in services["grafana"]["volumes"] if volume["type"] == "bind"]
    assert str(HOME / "monitoring/grafana/secure.yml") in sources
