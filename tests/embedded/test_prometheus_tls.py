"""A real Prometheus with the secure stack's own files: TLS, a password, and a scrape of itself over both."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
import yaml
from tenacity import retry, stop_after_delay, wait_fixed

from fraud_filter.compose import env_file, secrets
from fraud_filter.compose.addresses import find_prometheus
from fraud_filter.compose.prometheus import Prometheus
from fraud_filter.compose.readings import Readings, read
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME
from lab.harness.processes import Child, free_ports
from programs import require_program


@dataclass
class Place:
    env: Path
    port: int
    secrets: Path

    def get(self, scheme: str, path: str = "/-/ready", *, trust: bool = True, password: str = "") -> requests.Response:
        verify = str(self.secrets / secrets.CA) if trust else True
        auth = (secrets.PROMETHEUS_USER, password) if password else None
        return requests.get(f"{scheme}://127.0.0.1:{self.port}{path}", verify=verify, auth=auth, timeout=5)


def write_config(directory: Path, made: Path, port: int) -> None:
    """The stack's own, in one file: `scrape_config_files` came with Prometheus 2.43, and Debian 12 has 2.42."""
    source = HOME / "monitoring/prometheus"
    shutil.copytree(source / "rules", directory / "rules")
    config = yaml.safe_load((source / "prometheus.yml").read_text())
    assert config.pop("scrape_config_files") == ["itself.yml", "kafka.yml", "standby.yml"]
    config["scrape_configs"] += yaml.safe_load((source / "secure/itself.yml").read_text())["scrape_configs"]
    for name, text in (
        ("prometheus.yml", yaml.safe_dump(config)),
        ("prometheus-web.yml", (made / "prometheus-web.yml").read_text()),
    ):
        placed = text.replace("/run/secrets", str(made)).replace("127.0.0.1:9090", f"127.0.0.1:{port}")
        (directory / name).write_text(placed)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    program = require_program("FRAUD_TEST_PROMETHEUS", "prometheus", str(HOME / ".venv/prometheus"))
    directory = tmp_path_factory.mktemp("prometheus")
    made, (port,) = directory / ".secrets", free_ports(1)
    secrets.make(made)
    write_config(directory, made, port)
    env = directory / ".env"
    env_file.make(env)
    files = f"{env_file.COMPOSE_FILE.name}:{env_file.SECURE_FILE.name}"
    for name, value in {"COMPOSE_FILE": files, "SECRETS_DIR": str(made), "PROMETHEUS_PORT": str(port)}.items():
        env_file.change(env, name, value)
    argv = [
        program, f"--config.file={directory / 'prometheus.yml'}", f"--storage.tsdb.path={directory / 'data'}",
        f"--web.config.file={directory / 'prometheus-web.yml'}", f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    with Child("Prometheus", argv, log=directory / "prometheus.log"):
        place = Place(env, port, made)
        until_ready(place)
        yield place


@retry(stop=stop_after_delay(60), wait=wait_fixed(0.2))
def until_ready(place: Place) -> None:
    assert place.get("https", password=(place.secrets / secrets.PROMETHEUS_PASSWORD).read_text()).ok


def test_nothing_is_served_in_the_clear_or_without_a_password(place: Place) -> None:
    assert place.get("http").status_code == 400
    assert place.get("https").status_code == 401
    assert place.get("https", password="wrong").status_code == 401  # noqa: S106


def test_its_certificate_is_known_by_the_stack_s_authority_alone(place: Place) -> None:
    with pytest.raises(requests.exceptions.SSLError):
        place.get("https", trust=False)


def test_it_scrapes_itself(place: Place) -> None:
    @retry(stop=stop_after_delay(30), wait=wait_fixed(0.5))
    def until_scraped() -> None:
        (series,) = find_prometheus(place.env).instant('up{job="prometheus"}')
        assert series.value == 1

    until_scraped()


def test_status_reaches_it_by_what_up_wrote(place: Place) -> None:
    assert find_prometheus(place.env).instant("vector(1)")[0].value == 1
    assert read(find_prometheus(place.env)) == Readings()  # it answers, and knows of no filter


def test_who_does_not_trust_the_authority_is_told_why(place: Place) -> None:
    with pytest.raises(UsageError, match="certificate verify failed"):
        Prometheus(f"https://127.0.0.1:{place.port}").instant("up")
    with pytest.raises(UsageError, match="no Prometheus answered"):
        Prometheus(f"https://127.0.0.1:{place.port}", authority=place.secrets / "missing").instant("up")
