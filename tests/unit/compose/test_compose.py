"""The Compose stack as it is written down: services, settings, images, and what Prometheus and Grafana are told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from dotenv import dotenv_values

from composed import ComposeLoader
from fraud_filter import config
from fraud_filter.compose import checks, env_file
from fraud_filter.home import HOME

EXAMPLE = HOME / ".env.example"
COMPOSE_TEXT = (HOME / "docker-compose.yml").read_text()
COMPOSE = yaml.safe_load(COMPOSE_TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
ENV = {name: value or "" for name, value in dotenv_values(EXAMPLE, interpolate=False).items()}
SECRETS = {"SPARK_SECRET", "GRAFANA_PASSWORD"}
SETTINGS = {config.env_name(name) for name in config.Settings.model_fields}
DOCKERFILES = [
    HOME / folder / "Dockerfile" for folder in ("kafka", "spark", "monitoring/prometheus", "monitoring/alertmanager")
]
#: Read by Compose itself, and by programs on the host.
BESIDE = {"COMPOSE_FILE", "COMPOSE_PROFILES", "KAFKA_BOOTSTRAP_SERVERS"}
#: Those of BROKERS=3.
MORE_BROKERS = {"kafka-2", "kafka-3"}
#: Given by `up`: the folder of the user's files, and what tells that they have changed.
GIVEN = {"CONF_DIR", "CONF_VERSION"}


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
    pairs = (pair for service in SERVICES.values() for pair in service.get("environment", {}).items())
    passed_on = {name for name, value in pairs if value is None}
    return set(re.findall(r"\$\{(\w+)", COMPOSE_TEXT)) | passed_on


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
    """With a standby and one broker; what ends before the others start takes nothing from them."""
    together = {name for name, service in SERVICES.items() if service["restart"] != "no"} - MORE_BROKERS
    assert sum(map(limit_of, together)) <= 8 * 1024


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_limited_by_settings_of_its_own(name: str) -> None:
    prefix = "KAFKA" if name in MORE_BROKERS else name.replace("-", "_").upper()
    for limit, setting in (("mem_limit", "MEM_LIMIT"), ("cpus", "CPUS"), ("pids_limit", "PIDS")):
        assert SERVICES[name][limit] == f"${{{prefix}_{setting}:?see .env.example}}"
    assert 0 < float(ENV[f"{prefix}_CPUS"]) <= 2, "Docker refuses more cores than the machine has"
    assert int(ENV[f"{prefix}_PIDS"]) > 0


def test_heaps_leave_room_below_the_limits() -> None:
    heap = {name: mebibytes(ENV[name]) for name in ENV if name.endswith(("_HEAP", "_MEMORY"))}
    needed = {
        "kafka": heap["KAFKA_HEAP"],
        "spark-master": heap["SPARK_DAEMON_MEMORY"],
        "spark-worker": heap["SPARK_DAEMON_MEMORY"] + heap["SPARK_EXECUTOR_MEMORY"],
        "fraud-filter": heap["SPARK_DRIVER_MEMORY"],
    }
    needed |= {"standby-worker": needed["spark-worker"], "standby": needed["fraud-filter"]}
    for service, heaps in needed.items():
        assert heaps <= 0.6 * limit_of(service), f"{service}: Java needs memory beside its heap"


def test_ports_are_published_on_this_machine_only_and_can_be_changed() -> None:
    for name, service in SERVICES.items():
        for port in service.get("ports", []):
            assert re.fullmatch(r"127\.0\.0\.1:\$\{\w+_PORT:\?[^}]+\}:\d+", port), f"{name}: {port}"
    ports = [value for name, value in ENV.items() if name.endswith("_PORT")]
    assert len(set(ports)) == len(ports)


def test_the_example_has_every_variable_and_no_other() -> None:
    """But for the program's own settings, which may be left out."""
    assert variables() - SETTINGS | BESIDE - SETTINGS <= set(ENV) | GIVEN
    assert set(ENV) <= variables() | BESIDE
    assert not GIVEN & set(ENV)


def test_a_missing_value_is_always_an_error() -> None:
    """But for a program's setting that the stack has a default of its own for, and what `up` gives."""
    others = re.findall(r"\$\{(\w+)(?!:\?)\W[^}]*\}|\$\{(\w+)\}|\$([a-zA-Z_]+)", COMPOSE_TEXT)
    assert {name for names in others for name in names if name} == GIVEN | {"FRAUD_CHECKPOINT", "SPARK_MASTER"}


def test_the_example_is_plain() -> None:
    lines = EXAMPLE.read_text().splitlines()
    names = [line.split("=")[0] for line in lines if line and not line.startswith("#")]
    assert len(names) == len(set(names))
    for line in lines:
        assert re.fullmatch(r"|# .+|[A-Z_]+=[^$#]*", line), line
    assert {name for name, value in ENV.items() if not value} == SECRETS | {"ALERT_WEBHOOK_URL"}


def test_every_setting_reaches_the_programs() -> None:
    """What has no value in the file is taken from .env; of what has one that .env can't change, the file says why."""
    assert set(COMPOSE["x-settings"]) == SETTINGS
    fixed = {name for name, value in COMPOSE["x-settings"].items() if value and f"${{{name}:-" not in str(value)}
    ports = {f"FRAUD_{name}_PORT" for name in ("METRICS", "PROBE")}
    assert fixed == {*checks.INSIDE, *ports, "KAFKA_BOOTSTRAP_SERVERS"}
    for name in ports:
        assert any(f"${{{name}:?" in port for service in SERVICES.values() for port in service.get("ports", []))


@pytest.mark.parametrize("name", ["kafka-init", "fraud-filter", "standby", "probe", "generator"])
def test_programs_get_all_settings_and_the_files_that_they_name(name: str) -> None:
    assert COMPOSE["x-settings"].items() <= SERVICES[name]["environment"].items()
    assert COMPOSE["x-conf"] in SERVICES[name]["volumes"]
    assert COMPOSE["x-conf"] in SERVICES["spark-worker"]["volumes"], "executors read certificates"


def test_an_existing_kafka_is_told_to_all_its_clients_and_the_broker_left_out() -> None:
    overlay = yaml.load(env_file.EXISTING_KAFKA_FILE.read_text(), ComposeLoader)  # noqa: S506 - a SafeLoader
    told = {name for name, service in overlay["services"].items() if service.get("environment") == overlay["x-kafka"]}
    assert told == {name for name, service in SERVICES.items() if "FRAUD_MODE" in service.get("environment", {})}
    assert overlay["services"]["kafka"]["profiles"]
    waiting = {name for name, service in SERVICES.items() if "kafka" in service.get("depends_on", {})}
    assert waiting == {name for name, service in overlay["services"].items() if "depends_on" in service}


def test_the_example_repeats_the_program_s_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in config.Settings.model_fields:
        monkeypatch.delenv(config.env_name(name), raising=False)
    defaults, example = config.load().model_dump(), config.load(env_file=EXAMPLE).model_dump()
    assert {name for name in defaults if defaults[name] != example[name]} <= {
        "rules",
        "features_unsupported",
    }  # rules with velocity run where the mode can


def test_partitions_have_their_task_slots() -> None:
    assert int(ENV["KAFKA_PARTITIONS"]) + int(ENV["FRAUD_VELOCITY_PARTITIONS"]) <= int(ENV["SPARK_WORKER_CORES"])
    assert "SPARK_CORES_MAX" not in SERVICES["fraud-filter"]["environment"]  # it asks for what its query needs


@pytest.mark.parametrize("name", sorted(MORE_BROKERS))
def test_three_brokers_differ_by_their_places_alone(name: str) -> None:
    own = ("profiles", "build", "environment", "networks", "ports", "volumes")
    mine, its = ({key: value for key, value in SERVICES[each].items() if key not in own} for each in (name, "kafka"))
    assert mine == its
    assert SERVICES[name]["profiles"] == ["brokers"]
    assert SERVICES[name]["environment"].keys() == SERVICES["kafka"]["environment"].keys()
    # By `kafka` clients find any of them, and each other one by its own name.
    assert SERVICES[name]["networks"] == {network: {"aliases": ["kafka"]} for network in ("kafka", "load")}
    assert SERVICES["kafka"]["networks"] == {network: {"aliases": ["kafka-1"]} for network in ("kafka", "load")}
    waiting = [service["depends_on"] for service in SERVICES.values() if "kafka" in service.get("depends_on", {})]
    assert waiting
    assert all(each[name] == {**each["kafka"], "required": False} for each in waiting)
    assert f"{name}-data:/var/lib/kafka" in SERVICES[name]["volumes"]


@pytest.mark.parametrize(("name", "other"), [("standby", "fraud-filter"), ("standby-worker", "spark-worker")])
def test_a_standby_is_what_it_stands_by_for(name: str, other: str) -> None:
    """But for its place, its limits, and ports of this machine, which are the first one's."""
    own = ("profiles", "mem_limit", "cpus", "pids_limit", "depends_on", "ports", "build")
    assert SERVICES[name]["profiles"] == ["standby"]
    mine, its = ({key: value for key, value in SERVICES[each].items() if key not in own} for each in (name, other))
    assert mine == its
    assert limit_of(name) == limit_of(other)
    assert "ports" not in SERVICES[name]


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
