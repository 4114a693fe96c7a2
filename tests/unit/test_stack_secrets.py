"""The secure stack's secrets: made once, private, certificates and hashes that fit together."""

from __future__ import annotations

import base64
import ssl
import stat
import subprocess
from pathlib import Path

import bcrypt
import jwt
import pytest
import yaml

from fraud_filter.compose import secrets
from fraud_filter.errors import UsageError


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


@pytest.mark.parametrize(
    ("removed", "changed"),
    [
        ("kafka-probe", {"kafka-probe"}),
        ("prometheus-web.yml", {"prometheus-web.yml", "prometheus-password"}),
        ("spark-ui-token", {"spark-ui-token", "spark-ui-key"}),
        ("kafka-ca.crt", {"kafka-ca.crt", "kafka-broker.pem", "kafka-admin.crt", "kafka-admin.key"}),
    ],
)
def test_a_removed_file_is_made_anew_with_those_that_belong_to_it(made: Path, removed: str, changed: set[str]) -> None:
    before, version = contents(made), secrets.make(made)
    (made / removed).unlink()
    assert secrets.make(made) != version
    assert {name for name, text in contents(made).items() if text != before[name]} == changed


def test_no_two_stacks_share_a_secret(made: Path, tmp_path: Path) -> None:
    secrets.make(tmp_path)
    assert not set(contents(made).values()) & set(contents(tmp_path).values())


def test_the_version_tells_nothing(made: Path) -> None:
    version = secrets.make(made)
    assert len(version) == 16
    assert not any(version.encode() in text for text in contents(made).values())


def test_prometheus_takes_the_password(made: Path) -> None:
    (hashed,) = yaml.safe_load((made / "prometheus-web.yml").read_text())["basic_auth_users"].values()
    assert hashed.startswith("$2b$10$")
    assert bcrypt.checkpw((made / secrets.PROMETHEUS_PASSWORD).read_bytes(), hashed.encode())
    assert not bcrypt.checkpw(b"another", hashed.encode())


def test_sparks_pages_take_the_token(made: Path) -> None:
    key = base64.urlsafe_b64decode((made / "spark-ui-key").read_bytes())
    token = (made / "spark-ui-token").read_text()
    assert jwt.decode(token, key, ["HS256"])["sub"] == "healthcheck"
    with pytest.raises(jwt.InvalidSignatureError):
        jwt.decode(token, bytes(len(key)), ["HS256"])


@pytest.mark.parametrize(
    ("certificate", "purpose", "name"),
    [("kafka-broker.pem", "sslserver", "CN = kafka"), ("kafka-admin.crt", "sslclient", "CN = admin")],
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


def test_keys_fit_their_certificates(made: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_cert_chain(made / "kafka-broker.pem")
    context.load_cert_chain(made / "kafka-admin.crt", made / "kafka-admin.key")
    with pytest.raises(ssl.SSLError):
        context.load_cert_chain(made / "kafka-admin.crt", made / "kafka-broker.pem")


def test_the_authority_s_own_key_is_not_kept(made: Path) -> None:
    keys = [name for name, text in contents(made).items() if b"PRIVATE KEY" in text]
    assert sorted(keys) == ["kafka-admin.key", "kafka-broker.pem"]


def test_without_openssl_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="`openssl`"):
        secrets.make(tmp_path / "new")
