"""The secure stack's secrets: one file each in a directory that is its owner's alone. Knows no Compose project.

The files themselves can be read by everybody who gets into the directory: Compose mounts them into containers as they
are, and the programs there run as another user than the one who called it.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import bcrypt
import jwt
import yaml

from fraud_filter.config import HOME
from fraud_filter.errors import FraudFilterError, UsageError

#: What programs and people on this machine are to Kafka and to Prometheus.
OPERATOR = "kafka-operator"
PROMETHEUS_USER = "prometheus"

CA = "kafka-ca.crt"
PROMETHEUS_PASSWORD = "prometheus-password"  # noqa: S105 - names of files
GRAFANA_PASSWORD = "grafana-password"  # noqa: S105

#: Whom the token of Spark's pages is for.
_HEALTHCHECK = "healthcheck"
_BYTES = 24
#: The least that the signature of a token may be made with (RFC 7518, 3.2).
_KEY_BYTES = 32
#: 2^10 rounds: Prometheus reckons one for each new connection, and the passwords are random.
_BCRYPT_ROUNDS = 10


def make(directory: Path) -> str:
    """Makes what is missing in the directory, and leaves the rest alone.

    Files that belong together, such as a certificate and its authority, are all made anew when one of them is missing.

    Returns:
        A text that changes with the secrets, and tells nothing of them.

    Raises:
        UsageError: the directory can't be written, or there is no openssl.
        FraudFilterError: no certificates were made.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
        for names, maker in _MAKERS.items():
            if not all((directory / name).exists() for name in names):
                maker(directory)
        files = sorted(directory / name for names in _MAKERS for name in names)
        for file in files:
            file.chmod(0o644)
        contents = b"\0".join(file.read_bytes() for file in files)
    except OSError as error:
        raise UsageError(f"{error.filename or directory} (SECRETS_DIR) can't be written: {error.strerror}") from None
    return hashlib.sha256(contents).hexdigest()[:16]


def _certificates(directory: Path) -> None:
    if not shutil.which("openssl"):
        raise UsageError("the secure stack needs `openssl` to make certificates, and it is not there: install it")
    made = subprocess.run([HOME / "kafka/certificates", directory], capture_output=True, text=True, check=False)
    if made.returncode:
        raise FraudFilterError(f"no certificates were made: {(made.stderr.strip().splitlines() or ['?'])[-1]}")


def _password(name: str) -> Callable[[Path], None]:
    def write(directory: Path) -> None:
        (directory / name).write_text(secrets.token_urlsafe(_BYTES), encoding="utf-8")

    return write


def _spark_pages(directory: Path) -> None:
    """The key that Spark's pages check tokens with (Spark docs, "Security": JWSFilter), and a token."""
    key = secrets.token_bytes(_KEY_BYTES)
    (directory / "spark-ui-key").write_bytes(base64.urlsafe_b64encode(key))
    (directory / "spark-ui-token").write_text(jwt.encode({"sub": _HEALTHCHECK}, key, "HS256"), encoding="utf-8")


def _prometheus(directory: Path) -> None:
    """A password, and Prometheus' own file with its hash."""
    password = secrets.token_urlsafe(_BYTES)
    (directory / PROMETHEUS_PASSWORD).write_text(password, encoding="utf-8")
    hashed = bcrypt.hashpw(password.encode(), bcrypt.gensalt(_BCRYPT_ROUNDS)).decode()
    users = {"basic_auth_users": {PROMETHEUS_USER: hashed}}
    (directory / "prometheus-web.yml").write_text(yaml.safe_dump(users), encoding="utf-8")


_MAKERS: dict[tuple[str, ...], Callable[[Path], None]] = {
    (CA, "kafka-broker.pem", "kafka-admin.crt", "kafka-admin.key"): _certificates,
    **{
        (name,): _password(name)
        for name in (
            *("kafka-filter", "kafka-generator", "kafka-probe", OPERATOR),
            *("spark-secret", GRAFANA_PASSWORD),
        )
    },
    ("spark-ui-key", "spark-ui-token"): _spark_pages,
    (PROMETHEUS_PASSWORD, "prometheus-web.yml"): _prometheus,
}

#: Every file.
FILES = tuple(name for names in _MAKERS for name in names)
