"""The Compose stack as it is written down: services, settings, images, and what Prometheus and Grafana are told."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dotenv import dotenv_values
from jgo.env import LockFile, compute_spec_hash

from fraud_filter import config
from fraud_filter.home import HOME

EXAMPLE = HOME / ".env.example"
COMPOSE_TEXT = (HOME / "docker-compose.yml").read_text()
COMPOSE = yaml.safe_load(COMPOSE_TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
ENV = {name: value or "" for name, value in dotenv_values(EXAMPLE, interpolate=False).items()}
SECRETS = {"SPARK_SECRET", "GRAFANA_PASSWORD"}
DOCKERFILES = [HOME / path for path in ("kafka/Dockerfile", "spark/Dockerfile", "monitoring/prometheus/Dockerfile")]
SCRAPES = yaml.safe_load((HOME / "monitoring/prometheus/prometheus.yml").read_text())["scrape_configs"]
DASHBOARDS = sorted((HOME / "monitoring/grafana/dashboards").glob("*.json"))

#: Settings that the stack leaves alone: its broker has no logins, its rules and schema are the image's own.
NOT_IN_THE_STACK = {
    *("FRAUD_PAYMENT_SCHEMA", "FRAUD_RULES", "FRAUD_SOURCE", "FRAUD_SINK"),
    *("FRAUD_RATE_ROWS_PER_SECOND", "FRAUD_RATE_PARTITIONS", "FRAUD_KAFKA_SECURITY_PROTOCOL", "FRAUD_MONITORING"),
    *("FRAUD_KAFKA_SASL_MECHANISM", "FRAUD_KAFKA_SASL_USERNAME", "FRAUD_KAFKA_SASL_PASSWORD", "FRAUD_KAFKA_SSL_CA"),
    *("FRAUD_KAFKA_SASL_PASSWORD_FILE", "FRAUD_KAFKA_SSL_CERTIFICATE", "FRAUD_KAFKA_SSL_KEY"),
    "FRAUD_CHECKPOINT_LOCK_TIMEOUT_S",  # the stack's checkpoint is on a local disk
}


def mebibytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)([mg])", text)
    assert match, text
    return int(match[1]) * {"m": 1, "g": 1024}[match[2]]


def limit_of(service: str) -> int:
    match = re.match(r"\$\{(\w+)", SERVICES[service]["mem_limit"])
    assert match
    return mebibytes(ENV[match[1]])


def variables() -> set[str]:
    """Names that Compose takes from the environment or from .env."""
    passed_on = {name for service in SERVICES.values() for name, value in _environment(service) if value is None}
    return set(re.findall(r"\$\{(\w+)", COMPOSE_TEXT)) | passed_on


def _environment(service: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from service.get("environment", {}).items()


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_locked_down(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True
    assert service["init"] is True
    assert service["logging"]["options"]["max-size"]
    assert not {"privileged", "cap_add", "container_name", "network_mode", "user"} & set(service)


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_has_a_healthcheck_or_ends_by_itself(name: str) -> None:
    service = SERVICES[name]
    if service["restart"] == "no":
        waits = [other for other in SERVICES.values() if name in other.get("depends_on", {})]
        assert waits
        assert all(other["depends_on"][name]["condition"] == "service_completed_successfully" for other in waits)
    else:
        assert service["restart"] == "unless-stopped"
        assert service["healthcheck"]["test"][0] == "CMD"
        assert {"interval", "timeout", "retries", "start_period"} < set(service["healthcheck"])


def test_memory_limits_fit_into_8_gib_together() -> None:
    assert sum(limit_of(name) for name in SERVICES) <= 8 * 1024


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_limited_by_settings_of_its_own(name: str) -> None:
    prefix = name.replace("-", "_").upper()
    for limit, setting in (("mem_limit", "MEM_LIMIT"), ("cpus", "CPUS"), ("pids_limit", "PIDS")):
        assert SERVICES[name][limit] == f"${{{prefix}_{setting}:?see .env.example}}"
    assert 0 < float(ENV[f"{prefix}_CPUS"]) <= 2, "Docker refuses more cores than the machine has"
    assert int(ENV[f"{prefix}_PIDS"]) > 0


def test_no_network_has_a_way_to_the_world_outside() -> None:
    used = {network for service in SERVICES.values() for network in service["networks"]}
    assert used == set(COMPOSE["networks"])
    for name, network in COMPOSE["networks"].items():
        masquerade = network.get("driver_opts", {}).get("com.docker.network.bridge.enable_ip_masquerade")
        assert network.get("internal") or masquerade == "false", name


def test_what_publishes_a_port_has_a_network_that_lets_it() -> None:
    for name, service in SERVICES.items():
        if "ports" in service:
            assert any(not COMPOSE["networks"][network].get("internal") for network in service["networks"]), name


def test_heaps_leave_room_below_the_limits() -> None:
    heap = {name: mebibytes(ENV[name]) for name in ENV if name.endswith(("_HEAP", "_MEMORY"))}
    needed = {
        "kafka": heap["KAFKA_HEAP"],
        "spark-master": heap["SPARK_DAEMON_MEMORY"],
        "spark-worker": heap["SPARK_DAEMON_MEMORY"] + heap["SPARK_EXECUTOR_MEMORY"],
        "fraud-filter": heap["SPARK_DRIVER_MEMORY"],
    }
    for service, heaps in needed.items():
        assert heaps <= 0.6 * limit_of(service), f"{service}: Java needs memory beside its heap"


def test_ports_are_published_on_this_machine_only_and_can_be_changed() -> None:
    for name, service in SERVICES.items():
        for port in service.get("ports", []):
            assert re.fullmatch(r"127\.0\.0\.1:\$\{\w+_PORT:\?[^}]+\}:\d+", port), f"{name}: {port}"
    ports = [value for name, value in ENV.items() if name.endswith("_PORT")]
    assert len(set(ports)) == len(ports)


def test_workers_can_be_added() -> None:
    assert not {"ports", "hostname", "volumes"} & set(SERVICES["spark-worker"])


def test_every_data_volume_is_named() -> None:
    mounted = [volume for service in SERVICES.values() for volume in service.get("volumes", [])]
    assert {volume.split(":")[0] for volume in mounted if not volume.startswith(".")} == set(COMPOSE["volumes"])


def test_the_example_has_every_variable_and_no_other() -> None:
    # Read by Compose itself, and by programs on the host.
    beside = {"COMPOSE_FILE", "COMPOSE_PROFILES", "KAFKA_BOOTSTRAP_SERVERS"}
    assert set(ENV) == variables() | beside


def test_a_missing_value_is_always_an_error() -> None:
    assert re.findall(r"\$\{\w+(?!:\?)\W[^}]*\}|\$\{\w+\}|\$[a-zA-Z_]+", COMPOSE_TEXT) == []


def test_the_example_is_plain() -> None:
    lines = EXAMPLE.read_text().splitlines()
    names = [line.split("=")[0] for line in lines if line and not line.startswith("#")]
    assert len(names) == len(set(names))
    for line in lines:
        assert re.fullmatch(r"|# .+|[A-Z_]+=[^$#]*", line), line
    assert {name for name, value in ENV.items() if not value} == SECRETS


def test_every_setting_is_the_stack_s_or_the_user_s() -> None:
    known = {config.env_name(name) for name in config.Settings.model_fields}
    assert set(COMPOSE["x-settings"]) | NOT_IN_THE_STACK == known
    assert not set(COMPOSE["x-settings"]) & NOT_IN_THE_STACK


def test_the_example_repeats_the_program_s_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in config.Settings.model_fields:
        monkeypatch.delenv(config.env_name(name), raising=False)
    defaults, example = config.load().model_dump(), config.load(env_file=EXAMPLE).model_dump()
    assert {name for name in defaults if defaults[name] != example[name]} <= {"mode"}


def test_partitions_have_their_task_slots() -> None:
    assert int(ENV["KAFKA_PARTITIONS"]) <= int(ENV["SPARK_WORKER_CORES"])
    assert SERVICES["fraud-filter"]["environment"]["SPARK_CORES_MAX"].startswith("${KAFKA_PARTITIONS")


def test_a_clean_stop_fits_into_the_grace_period() -> None:
    grace = re.fullmatch(r"(\d+)s", SERVICES["fraud-filter"]["stop_grace_period"])
    assert grace
    assert int(grace[1]) > 2 * float(ENV["FRAUD_STOP_TIMEOUT_S"])


def test_secrets_are_on_no_command_line() -> None:
    for service in SERVICES.values():
        shown = json.dumps([service.get("command"), service.get("entrypoint"), service.get("healthcheck")])
        assert not any(secret in shown for secret in SECRETS)


def test_each_image_of_ours_is_built_once_and_never_pulled() -> None:
    """Two builds of one name would differ by their labels, and the containers be recreated each time."""
    ours = [service for service in SERVICES.values() if service["image"].startswith("fraud-filter-")]
    built = [service["image"] for service in ours if "build" in service]
    assert sorted(built) == sorted({service["image"] for service in ours})
    assert all(service["pull_policy"] == "never" for service in ours if "build" not in service)


@pytest.mark.usefixtures("compose")
def test_compose_accepts_the_file(tmp_path: Path) -> None:
    env = tmp_path / "env"
    env.write_text(re.sub(r"(?m)^(SPARK_SECRET|GRAFANA_PASSWORD)=$", r"\1=generated", EXAMPLE.read_text()))
    assert compose_config(env) == ""
    env.write_text(EXAMPLE.read_text())
    # Whichever of them Compose meets first.
    assert re.search(
        r"required variable (SPARK_SECRET|GRAFANA_PASSWORD) is missing a value: see \.env\.example", compose_config(env)
    )


def compose_config(env: Path) -> str:
    clean = {name: value for name, value in os.environ.items() if name not in ENV}
    command = ["docker", "compose", "--project-directory", str(HOME), "--env-file", str(env), "config", "--quiet"]
    return subprocess.run(command, env=clean, capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.parent.name)
def test_images_are_debian_s_base_and_run_as_nobody_special(dockerfile: Path) -> None:
    text = dockerfile.read_text()
    stages = re.findall(r"^FROM \S+ AS (\S+)$", text, re.MULTILINE)
    assert set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) <= {"${BASE_IMAGE}", *stages}
    assert re.findall(r"^USER (.+)$", text, re.MULTILINE)[-1] == "10001:10001"
    assert f"ARG BASE_IMAGE={ENV['BASE_IMAGE']}\n" in text
    assert len(re.findall(r"apt-get install", text)) == len(re.findall("--no-install-recommends", text))
    assert not re.search(r"\b(curl|wget|ADD)\b", text), "packages come through their own clients, with checksums"


@pytest.mark.parametrize("setting", ["BASE_IMAGE", "GRAFANA_IMAGE"])
def test_images_from_a_registry_are_pinned_by_digest(setting: str) -> None:
    assert re.fullmatch(r"[a-z/]+:[\w.-]+@sha256:[0-9a-f]{64}", ENV[setting])


def test_grafana_has_no_known_hole_and_fetches_nothing_at_its_start() -> None:
    version = re.search(r":(\d+)\.(\d+)\.(\d+)@", ENV["GRAFANA_IMAGE"])
    assert version
    assert tuple(map(int, version.groups())) > (12, 3, 0), "CVE-2026-21720"
    settings = SERVICES["grafana"]["environment"]
    assert settings["GF_PLUGINS_PREINSTALL_DISABLED"] == "true"
    assert {settings[f"GF_ANALYTICS_{name}"] for name in ("CHECK_FOR_UPDATES", "CHECK_FOR_PLUGIN_UPDATES")} == {"false"}


@pytest.mark.parametrize("stage", ["packages", "jars", "java"])
def test_kafka_and_spark_share_their_first_steps(stage: str) -> None:
    """Word for word: then a step is built once, and kept once on the disk."""
    pattern = re.compile(rf"^FROM \S+ AS {stage}\n.*?(?=\n\n|^COPY \w+/jgo|\Z)", re.MULTILINE | re.DOTALL)
    kafka, spark = (pattern.findall(path.read_text()) for path in DOCKERFILES[:2])
    assert len(kafka) == 1
    assert kafka == spark


def test_no_secret_and_no_cache_gets_into_an_image() -> None:
    lines = (HOME / ".dockerignore").read_text().splitlines()
    assert [line for line in lines if not line.startswith(("#", "!"))] == ["*", "**/__pycache__", "**/Dockerfile"]
    assert not any(".env" in line for line in lines)


def test_the_agent_s_lock_belongs_to_its_specification() -> None:
    lock = LockFile.load(HOME / "monitoring/jmx/jgo.lock.toml")
    assert lock.spec_hash == compute_spec_hash(HOME / "monitoring/jmx/jgo.toml"), "run `make lock`"
    assert [len(jar.sha256 or "") for jar in lock.dependencies] == [64]


@pytest.mark.parametrize(
    "script",
    [
        *("app/base", "app/locked", "kafka/certificates", "kafka/entrypoint.sh", "kafka/healthcheck"),
        *("spark/entrypoint.sh", "spark/healthcheck"),
    ],
)
def test_scripts_can_be_run_and_stop_at_the_first_error(script: str) -> None:
    assert (HOME / script).stat().st_mode & stat.S_IXUSR
    assert "\nset -euo pipefail\n" in (HOME / script).read_text()
    assert len((HOME / script).read_text().splitlines()) <= 80


def test_prometheus_scrapes_every_service_that_runs() -> None:
    static = [group for scrape in SCRAPES for group in scrape.get("static_configs", [])]
    targets = [target for group in static for target in group["targets"]]
    hosts = {target.split(":")[0] for target in targets}
    hosts |= {name for scrape in SCRAPES for found in scrape.get("dns_sd_configs", []) for name in found["names"]}
    running = {name for name, service in SERVICES.items() if service["restart"] != "no" and "profiles" not in service}
    assert hosts - {"127.0.0.1"} == running - {"prometheus"}
    fixed = COMPOSE["x-settings"]
    for service, setting in (("fraud-filter", "METRICS"), ("probe", "PROBE"), ("generator", "GENERATOR")):
        assert f"{service}:{fixed[f'FRAUD_{setting}_PORT']}" in targets


def test_grafana_finds_its_dashboards() -> None:
    provider = yaml.safe_load((HOME / "monitoring/grafana/provisioning/dashboards/dashboards.yml").read_text())
    folder = provider["providers"][0]["options"]["path"]
    grafana = SERVICES["grafana"]
    assert f"./monitoring/grafana/dashboards:{folder}:ro" in grafana["volumes"]
    home = Path(grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert home.parent == Path(folder)
    assert home.name in [path.name for path in DASHBOARDS]
