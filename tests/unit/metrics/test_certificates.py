"""When certificates end, as the filter tells it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from fraud_filter.config import Settings, load
from fraud_filter.home import HOME
from fraud_filter.metrics.filter_metrics import CertificateMetrics

DAY_S = 86_400


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("certificates")
    make(directory, 40)
    return directory


def make(directory: Path, days: int) -> None:
    subprocess.run([HOME / "kafka/certificates", directory, str(days)], check=True, capture_output=True)


def settings(directory: Path, **changes: str) -> Settings:
    files = {"ca": "kafka-ca.crt", "certificate": "kafka-admin.crt", "key": "kafka-admin.key"}
    paths = {f"kafka_ssl_{name}": str(directory / file) for name, file in files.items()}
    return load({"kafka_security_protocol": "SSL", **paths, **changes}, Path("/dev/null"))


def shown(registry: CollectorRegistry) -> dict[str, float]:
    found = [sample for family in registry.collect() for sample in family.samples]
    assert {sample.name for sample in found} <= {"fraud_filter_certificate_expiry_timestamp_seconds"}
    return {sample.labels["file"]: sample.value for sample in found}


def test_the_end_of_each_file_is_told(made: Path) -> None:
    registry = CollectorRegistry()
    CertificateMetrics(registry, settings(made))
    values = shown(registry)
    assert set(values) == {"kafka-ca.crt", "kafka-admin.crt"}
    for value in values.values():
        assert 39.9 * DAY_S < value - time.time() <= 40 * DAY_S


def test_a_renewed_file_counts_at_the_next_scrape(tmp_path: Path) -> None:
    make(tmp_path, 10)
    registry = CollectorRegistry()
    CertificateMetrics(registry, settings(tmp_path))
    before = shown(registry)["kafka-ca.crt"]
    make(tmp_path, 20)
    assert shown(registry)["kafka-ca.crt"] - before > 9 * DAY_S


def test_of_authorities_the_last_counts_and_of_a_chain_the_first(made: Path, tmp_path: Path) -> None:
    make(tmp_path, 10)
    for name in ("kafka-ca.crt", "kafka-admin.crt"):
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes() + (made / name).read_bytes())
    registry = CollectorRegistry()
    CertificateMetrics(registry, settings(tmp_path))
    days = {name: round((value - time.time()) / DAY_S) for name, value in shown(registry).items()}
    assert days == {"kafka-ca.crt": 40, "kafka-admin.crt": 10}


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_a_file_that_can_not_be_read_has_no_sample(made: Path, tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "ca.crt"
    if content is not None:
        file.write_bytes(content)
    registry = CollectorRegistry()
    CertificateMetrics(registry, settings(made, kafka_ssl_ca=str(file)))
    assert set(shown(registry)) == {"kafka-admin.crt"}


def test_without_tls_nothing_is_told(made: Path) -> None:
    registry = CollectorRegistry()
    CertificateMetrics(registry, settings(made, kafka_security_protocol="PLAINTEXT"))
    assert shown(registry) == {}
