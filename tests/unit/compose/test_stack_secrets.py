"""The secure stack's secrets: made once, private, certificates and hashes that fit together."""

from __future__ import annotations

import stat
import subprocess
import time
from pathlib import Path

import jwt
import pytest

from fraud_filter.compose import secrets
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME
from fraud_filter.metrics.filter_metrics import certificate_ends

CERTIFICATES = {*secrets.CERTIFICATES}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("made") / ".secrets"
    secrets.make(directory)
    return directory


def contents(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir()}


def test_every_file_is_there_and_no_other(made: Path) -> None:
    assert sorted(file.name for file in made.iterdir()) == sorted(secrets.FILES)


def test_only_the_owner_gets_into_the_directory_and_containers_can_read_the_files(made: Path) -> None:
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in made.iterdir()} == {0o644}


def test_what_is_there_is_left_alone(made: Path) -> None:
    before, version = contents(made), secrets.make(made)
    assert contents(made) == before
    assert secrets.make(made) == version


def _let_a_second_pass() -> None:
    """Certificates that are made in the same second end in the same one, and the token with them."""
    time.sleep(1)


@pytest.mark.parametrize(
    ("removed", "changed"),
    [
        ("kafka-probe", {"kafka-probe"}),
        ("prometheus-web.yml", {"prometheus-web.yml", "prometheus-password"}),
        # The token ends with the certificates.
        ("spark-ui-token", {*CERTIFICATES, "spark-ui-token", "spark-ui-key"}),
    ],
)
def test_a_removed_file_is_made_anew_with_those_that_belong_to_it(made: Path, removed: str, changed: set[str]) -> None:
    before, version = contents(made), secrets.make(made)
    (made / removed).unlink()
    _let_a_second_pass()
    assert secrets.make(made) != version
    assert {name for name, text in contents(made).items() if text != before[name]} == changed


def test_no_two_stacks_share_a_secret(made: Path, tmp_path: Path) -> None:
    secrets.make(tmp_path)
    assert not set(contents(made).values()) & set(contents(tmp_path).values())


@pytest.mark.parametrize(
    ("certificate", "purpose", "name"),
    [
        ("kafka-broker.pem", "sslserver", "CN = kafka"),
        ("kafka-admin.crt", "sslclient", "CN = admin"),
        ("prometheus.pem", "sslserver", "CN = prometheus"),
        ("grafana.pem", "sslserver", "CN = grafana"),
    ],
)
def test_certificates_are_the_authoritys(made: Path, certificate: str, purpose: str, name: str) -> None:
    words = ["-purpose", purpose, "-x509_strict", "-CAfile", str(made / secrets.CA), str(made / certificate)]
    verified = subprocess.run(["openssl", "verify", *words], capture_output=True, text=True, check=False)
    assert verified.returncode == 0, verified.stderr
    shown = subprocess.run(
        ["openssl", "x509", "-in", made / certificate, "-noout", "-subject", "-nameopt", "oneline"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert shown.stdout.strip() == f"subject={name}"


@pytest.mark.parametrize("certificate", ["prometheus.pem", "grafana.pem"])
def test_a_page_s_certificate_is_no_client_of_kafka_s(made: Path, certificate: str) -> None:
    words = ["-purpose", "sslclient", "-CAfile", str(made / secrets.CA), str(made / certificate)]
    verified = subprocess.run(["openssl", "verify", *words], capture_output=True, text=True, check=False)
    assert verified.returncode != 0
    assert "purpose" in verified.stderr


def test_the_authority_s_own_key_is_not_kept(made: Path) -> None:
    keys = [name for name, text in contents(made).items() if b"PRIVATE KEY" in text]
    assert sorted(keys) == ["grafana.pem", "kafka-admin.key", "kafka-broker.pem", "prometheus.pem"]


# -- what ends


def shorten(directory: Path, days: int) -> None:
    """Puts certificates in their places that end in so many days, as after a long time."""
    subprocess.run([HOME / "kafka/certificates", directory, str(days)], check=True, capture_output=True)


def test_what_is_made_lasts_a_year_and_ends_together(made: Path) -> None:
    left = [
        (end - time.time()) / 86_400
        for name in CERTIFICATES - {"kafka-admin.key"}
        for end in certificate_ends(made / name)
    ]
    assert secrets.LIFE_DAYS - 1 < min(left) <= max(left) <= secrets.LIFE_DAYS
    claims = jwt.decode((made / "spark-ui-token").read_text(), options={"verify_signature": False})
    assert claims["exp"] == int(certificate_ends(made / secrets.CA)[0])


def test_certificates_are_renewed_before_they_end_with_the_token(tmp_path: Path) -> None:
    secrets.make(tmp_path)
    shorten(tmp_path, secrets.RENEW_DAYS - 1)
    before, said = contents(tmp_path), list[str]()
    _let_a_second_pass()
    secrets.make(tmp_path, said.append)
    after = contents(tmp_path)
    changed = {name for name, text in after.items() if text != before[name]}
    assert changed == {*CERTIFICATES, "spark-ui-token", "spark-ui-key"}
    assert min(certificate_ends(tmp_path / secrets.CA)) - time.time() > 86_400 * (secrets.LIFE_DAYS - 1)
    assert "kafka-ca.crt" in said[0]
    assert f"{secrets.RENEW_DAYS - 1} days are left" in said[0]
    assert contents(tmp_path).keys() == set(secrets.FILES)


def test_certificates_with_time_left_are_left_alone(tmp_path: Path) -> None:
    secrets.make(tmp_path)
    shorten(tmp_path, secrets.RENEW_DAYS + 2)
    secrets.make(tmp_path)
    before = contents(tmp_path)
    secrets.make(tmp_path, pytest.fail)
    assert contents(tmp_path) == before


def test_a_running_container_keeps_the_file_that_it_was_given(tmp_path: Path) -> None:
    """Compose mounts a file, not its name: one that changed in its place would be half of another set."""
    secrets.make(tmp_path)
    given = {name: (tmp_path / name).open("rb") for name in secrets.FILES}
    before = contents(tmp_path)
    shorten(tmp_path, 1)
    secrets.make(tmp_path)
    (tmp_path / "kafka-filter").unlink()
    secrets.make(tmp_path)
    assert {name: file.read() for name, file in given.items()} == before


def test_without_openssl_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="`openssl`"):
        secrets.make(tmp_path / "new")
