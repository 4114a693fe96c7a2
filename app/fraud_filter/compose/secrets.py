"""The secure stack: turned on and off by its second Compose file, with a directory of secrets, one file each.

The directory is its owner's alone. The files can be read by everybody who gets into it: Compose mounts them into
containers as they are, and the programs there run as another user than the one who called it. A file that changes is
replaced by another, so that a running container keeps the one that it was given.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import bcrypt
import click
import jwt
import yaml

from fraud_filter.compose import env_file
from fraud_filter.compose.stack import Stack
from fraud_filter.config import env_name
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.home import HOME
from fraud_filter.metrics.filter_metrics import certificate_ends

#: What programs and people on this machine are to Kafka and to Prometheus.
OPERATOR = "kafka-operator"
PROMETHEUS_USER = "prometheus"

CA = "kafka-ca.crt"
PROMETHEUS_PASSWORD = "prometheus-password"  # noqa: S105 - names of files
GRAFANA_PASSWORD = "grafana-password"  # noqa: S105
_PROMETHEUS_WEB = "prometheus-web.yml"
_SPARK_KEY = "spark-ui-key"
_SPARK_TOKEN = "spark-ui-token"  # noqa: S105

#: Of certificates, and of the token, which ends with them.
LIFE_DAYS = 397
#: With fewer left they are renewed. The alert comes at 30.
RENEW_DAYS = 90
_DAY_S = 86_400

#: Whom the token of the Spark master's page is for.
_HEALTHCHECK = "healthcheck"
_BYTES = 24
_DIRECTORY = "SECRETS_DIR"
_VERSION = "SECRETS_VERSION"
#: The least that the signature of a token may be made with (RFC 7518, 3.2).
_KEY_BYTES = 32
#: 2^10 rounds: Prometheus reckons one for each new connection, and the passwords are random.
_BCRYPT_ROUNDS = 10


def switch(stack: Stack, *, secure: bool) -> None:
    """Writes into `.env` which of the two stacks it is, from now on.

    Raises:
        UsageError: the stack runs on an existing broker.
    """
    if secure == stack.secure:
        return
    if secure and not stack.own_kafka:
        raise UsageError(
            f"--secure gives logins to the stack's own broker: take {env_file.EXISTING_KAFKA_FILE.name} out of "
            f"COMPOSE_FILE in {stack.env}, or leave --secure away"
        )
    files = (env_file.COMPOSE_FILE, env_file.SECURE_FILE) if secure else (env_file.COMPOSE_FILE,)
    stack.change("COMPOSE_FILE", ":".join(file.name for file in files))
    if not secure:
        for name in (_VERSION, *_access(Path())):
            stack.remove(name)


def prepare(stack: Stack) -> None:
    """Makes secrets of a secure stack that are missing or end soon, and writes into `.env` where they are.

    Does nothing for the other stack.

    Raises:
        UsageError: they can't be made.
    """
    if not stack.secure:
        return
    directory = Path(stack.values.get(_DIRECTORY) or stack.env.parent / ".secrets").absolute()
    version = make(directory, click.echo)
    for name, value in {_DIRECTORY: str(directory), _VERSION: version, **_access(directory)}.items():
        if stack.values.get(name) != value:
            stack.change(name, value)


def _access(directory: Path) -> dict[str, str]:
    """The program's own settings: it is an operator at the broker's port on this machine."""
    return {
        env_name("kafka_security_protocol"): "SASL_SSL",
        env_name("kafka_sasl_mechanism"): "SCRAM-SHA-512",
        env_name("kafka_sasl_username"): OPERATOR,
        env_name("kafka_sasl_password_file"): str(directory / OPERATOR),
        env_name("kafka_ssl_ca"): str(directory / CA),
    }


def make(directory: Path, say: Callable[[str], None] = lambda _: None) -> str:
    """Makes in the directory what is missing or ends soon, and leaves the rest alone.

    Files that belong together, such as a certificate and its authority, are all made again when one of them is.

    Args:
        say: is told of what is replaced because it ends.

    Returns:
        A text that changes with the secrets, and tells nothing of them.

    Raises:
        UsageError: the directory can't be written, or there is no openssl.
        FraudFilterError: no certificates were made.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
        for names, write in _GROUPS:
            missing = not all((directory / name).exists() for name in names)
            why = "" if missing or CA not in names else _certificates_outdated(directory)
            if why:
                say(f"{', '.join(names)}: renewed: {why}")
            if missing or why:
                write(directory)
        files = sorted(directory / name for name in FILES)
        for file in files:
            file.chmod(0o644)
        contents = b"\0".join(file.read_bytes() for file in files)
    except OSError as error:
        raise UsageError(f"{error.filename or directory} (SECRETS_DIR) can't be written: {error.strerror}") from None
    return hashlib.sha256(contents).hexdigest()[:16]


def _write(file: Path, text: str) -> None:
    new = file.with_name(f".{file.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(file)


def _certificates(directory: Path) -> None:
    if not shutil.which("openssl"):
        raise UsageError("the secure stack needs `openssl` to make certificates, and it is not there: install it")
    command: list[str | Path] = [HOME / "kafka/certificates", directory, str(LIFE_DAYS)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        raise FraudFilterError(f"no certificates were made: {(made.stderr.strip().splitlines() or ['?'])[-1]}")
    _spark_pages(directory)


def _certificates_outdated(directory: Path) -> str:
    try:
        first = min(end for name in CERTIFICATES[:-1] for end in certificate_ends(directory / name))
    except ValueError:
        return "there is a file without a certificate"
    days = (first - time.time()) / _DAY_S
    return "" if days >= RENEW_DAYS else f"{max(days, 0):.0f} days are left"


def _password(name: str) -> Callable[[Path], None]:
    def write(directory: Path) -> None:
        _write(directory / name, secrets.token_urlsafe(_BYTES))

    return write


def _spark_pages(directory: Path) -> None:
    """The key that the Spark master's page checks tokens with (Spark docs, "Security": JWSFilter), and a token.

    It ends with the certificates: one alert is for all that ends.
    """
    key = secrets.token_bytes(_KEY_BYTES)
    claims = {"sub": _HEALTHCHECK, "exp": int(max(certificate_ends(directory / CA)))}
    _write(directory / _SPARK_KEY, base64.urlsafe_b64encode(key).decode())
    _write(directory / _SPARK_TOKEN, jwt.encode(claims, key, "HS256"))


def _prometheus(directory: Path) -> None:
    """A password, and Prometheus' own file with its hash and its certificate's place in the container."""
    password = secrets.token_urlsafe(_BYTES)
    hashed = bcrypt.hashpw(password.encode(), bcrypt.gensalt(_BCRYPT_ROUNDS)).decode()
    web = {"basic_auth_users": {PROMETHEUS_USER: hashed}, "tls_server_config": _PROMETHEUS_TLS}
    _write(directory / PROMETHEUS_PASSWORD, password)
    _write(directory / _PROMETHEUS_WEB, yaml.safe_dump(web))


_PROMETHEUS_CERTIFICATE = "prometheus.pem"
_PROMETHEUS_TLS = dict.fromkeys(("cert_file", "key_file"), f"/run/secrets/{_PROMETHEUS_CERTIFICATE}")
#: Those that `kafka/certificates` makes, with the key of one that has it apart.
CERTIFICATES = (CA, "kafka-broker.pem", "kafka-admin.crt", _PROMETHEUS_CERTIFICATE, "grafana.pem", "kafka-admin.key")
#: Files that are made together, and what makes them.
_GROUPS: tuple[tuple[tuple[str, ...], Callable[[Path], None]], ...] = (
    ((*CERTIFICATES, _SPARK_KEY, _SPARK_TOKEN), _certificates),
    *(
        ((name,), _password(name))
        for name in (
            *("kafka-filter", "kafka-generator", "kafka-probe", OPERATOR),
            *("spark-secret", GRAFANA_PASSWORD),
        )
    ),
    ((PROMETHEUS_PASSWORD, _PROMETHEUS_WEB), _prometheus),
)

#: Every file.
FILES = tuple(name for names, _ in _GROUPS for name in names)
