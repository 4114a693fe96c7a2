"""How each Kafka client of this project is configured from the settings: librdkafka, kafka-python and Spark's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fraud_filter.config import Settings, named, refused
from fraud_filter.errors import UsageError

#: A reference to a file, which Kafka's own clients resolve where they run (KIP-297, KIP-421): an option that is sent
#: to executors, logged or shown on Spark's pages then holds no secret.
_PROVIDER = {
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
}
#: How long Spark's clients wait for an answer before they ask another broker. Kafka's 30 s are waited again and again
#: A broker that the others do not reach still calls itself the leader, and has nothing new: clients ask all of them so
#: often, in milliseconds (Kafka's default is 5 minutes).
_LEADERS_MS = "10000"
#: where a broker hangs, and its controller needs 9 s to give such a broker's partitions to others.
_SILENCE_MS = "10000"
#: Kafka's login modules by mechanism, and what each calls user and secret.
_OAUTH = "OAUTHBEARER"
_OAUTH_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
_SCRAM = ("scram.ScramLoginModule", "username", "password")
_JAAS = {
    "PLAIN": ("plain.PlainLoginModule", "username", "password"),
    _OAUTH: ("oauthbearer.OAuthBearerLoginModule", "clientId", "clientSecret"),
}
#: What a reference can't hold.
_NO_REFERENCE = re.compile(r"[:{}]")
#: What Kafka's clients would read otherwise than as a part of the password.
_NO_PASSWORD = re.compile(r'[\s"\\]')


def librdkafka_config(settings: Settings, **extra: Any) -> dict[str, Any]:
    """Configuration of a confluent-kafka client (`extra` keys use `_` for `.`).

    Raises:
        UsageError: name, password, certificate or key are missing or can't be used.
    """
    config: dict[str, Any] = {
        "bootstrap.servers": settings.kafka_bootstrap_servers,
        "security.protocol": settings.kafka_security_protocol,
        "topic.metadata.refresh.interval.ms": _LEADERS_MS,
        "log_level": 2,  # refused connections are reported once, by the caller, not by the library's log
    }
    if _uses_sasl(settings):
        login = {"sasl.username": settings.kafka_sasl_username, "sasl.password": _password(settings)}
        if settings.kafka_sasl_mechanism == _OAUTH:
            login = _oauth_login(settings, login["sasl.password"])
        config |= {"sasl.mechanism": settings.kafka_sasl_mechanism, **login}
    if _uses_tls(settings):
        names = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")
        config |= {name: file for name, file in zip(names, _tls_files(settings), strict=True) if file}
    return config | {name.replace("_", "."): value for name, value in extra.items()}


def kafka_python_config(settings: Settings) -> dict[str, Any]:
    """Keyword arguments of a kafka-python client, for what librdkafka has not: a group of a protocol of our own.

    Raises:
        UsageError: name, password, certificate or key are missing or can't be used.
    """
    config: dict[str, Any] = {
        "bootstrap_servers": settings.kafka_bootstrap_servers.split(","),
        "security_protocol": settings.kafka_security_protocol,
        "request_timeout_ms": round(settings.kafka_timeout_s * 1000),
    }
    if _uses_sasl(settings):
        config |= {
            "sasl_mechanism": settings.kafka_sasl_mechanism,
            "sasl_plain_username": settings.kafka_sasl_username,
            "sasl_plain_password": _password(settings),
        }
        if settings.kafka_sasl_mechanism == _OAUTH:
            from fraud_filter.kafka.oauth import Tokens

            secret = config.pop("sasl_plain_password")
            config["sasl_oauth_token_provider"] = Tokens(settings, _token_url(settings), secret)
    if _uses_tls(settings):
        names = ("ssl_cafile", "ssl_certfile", "ssl_keyfile")
        config |= {name: file for name, file in zip(names, _tls_files(settings), strict=True) if file}
    return config


def spark_kafka_options(settings: Settings) -> dict[str, str]:
    """Connection options of Spark's Kafka source and sink, `kafka.` prefix included.

    What is in a file stays there: the options name the file, and the clients on driver and executors read it.

    Raises:
        UsageError: name, password, certificate or key are missing or can't be used.
    """
    options = {
        "bootstrap.servers": settings.kafka_bootstrap_servers,
        "security.protocol": settings.kafka_security_protocol,
        "request.timeout.ms": _SILENCE_MS,
        "metadata.max.age.ms": _LEADERS_MS,
    }
    if _uses_sasl(settings):
        module, user, secret = _JAAS.get(settings.kafka_sasl_mechanism, _SCRAM)
        password = _password(settings)
        if settings.kafka_sasl_password_file:
            options |= _PROVIDER
            password = _reference("kafka_sasl_password_file", settings.kafka_sasl_password_file)
        login = f'{user}="{_quoted(settings.kafka_sasl_username)}" {secret}="{_quoted(password)}"'
        if settings.kafka_sasl_mechanism == _OAUTH:
            options |= {
                "sasl.login.callback.handler.class": f"{_OAUTH_PACKAGE}.OAuthBearerLoginCallbackHandler",
                "sasl.oauthbearer.token.endpoint.url": _token_url(settings),
            }
            login += f' scope="{_quoted(settings.kafka_oauth_scope)}"' if settings.kafka_oauth_scope else ""
        options |= {
            "sasl.mechanism": settings.kafka_sasl_mechanism,
            "sasl.jaas.config": f"org.apache.kafka.common.security.{module} required {login};",
        }
    ca, certificate, key = _tls_files(settings) if _uses_tls(settings) else ("", "", "")
    if ca:
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": _absolute(ca)}
    if certificate:
        options |= _PROVIDER | {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _reference("kafka_ssl_certificate", certificate),
            "ssl.keystore.key": _reference("kafka_ssl_key", key),
        }
    return {f"kafka.{name}": value for name, value in options.items()}


def _uses_sasl(settings: Settings) -> bool:
    return settings.kafka_security_protocol.startswith("SASL_")


def _uses_tls(settings: Settings) -> bool:
    return settings.kafka_security_protocol.endswith("SSL")


def describe_login(settings: Settings) -> str:
    """What to add where no broker answered: a client can't tell a refused login from that."""
    if settings.kafka_security_protocol == "PLAINTEXT":
        return ""
    return f" (a refused login looks the same: {describe_user(settings)})"


def describe_user(settings: Settings) -> str:
    """The security protocol, and with a login the user."""
    who = f" as user {settings.kafka_sasl_username!r}" if _uses_sasl(settings) else ""
    return f"{settings.kafka_security_protocol}{who}"


def read_password(file: Path) -> str:
    """The password that a file holds.

    Raises:
        UsageError: the file can't be read, or holds something else beside it.
    """
    try:
        password = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"password file {file} can't be read: {getattr(error, 'strerror', None) or error}") from None
    if not password or _NO_PASSWORD.search(password):
        raise UsageError(
            f"password file {file} is not accepted: it must hold the password alone, without blanks, quotes and "
            "backslashes, and without a line's end (write it with printf %s)"
        )
    return password


def _tls_files(settings: Settings) -> tuple[str, str, str]:
    """The authority's certificate, our own and its key; "" for what is not given."""
    names = ("kafka_ssl_ca", "kafka_ssl_certificate", "kafka_ssl_key")
    ca, certificate, key = (_readable(name, getattr(settings, name)) for name in names)
    if bool(certificate) != bool(key):
        given, missing = (names[1], names[2]) if certificate else (names[2], names[1])
        raise refused(given, getattr(settings, given), f"stands without {missing}", "give both or none")
    return ca, certificate, key


def _readable(setting: str, file: str) -> str:
    try:
        if file:
            Path(file).read_bytes()
    except OSError as error:
        raise refused(setting, file, f"can't be read: {error.strerror}") from None
    return file


def _password(settings: Settings) -> str:
    """The SASL password, from its file where one is named."""
    needed = f"is needed with kafka_security_protocol={settings.kafka_security_protocol}"
    if not settings.kafka_sasl_username:
        raise UsageError(f"{named('kafka_sasl_username')}: a user's name {needed}")
    if not settings.kafka_sasl_password_file:
        password = settings.kafka_sasl_password.get_secret_value()
        if not password:
            raise UsageError(f"{named('kafka_sasl_password_file')}: a file with the password {needed}")
        return password
    try:
        return read_password(Path(settings.kafka_sasl_password_file))
    except UsageError as error:
        raise UsageError(f"{named('kafka_sasl_password_file')}: {error}") from None


def _oauth_login(settings: Settings, secret: str) -> dict[str, str]:
    """How librdkafka fetches its tokens."""
    login = {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": settings.kafka_sasl_username,
        "sasl.oauthbearer.client.secret": secret,
        "sasl.oauthbearer.token.endpoint.url": _token_url(settings),
    }
    return login | ({"sasl.oauthbearer.scope": settings.kafka_oauth_scope} if settings.kafka_oauth_scope else {})


def _token_url(settings: Settings) -> str:
    url = settings.kafka_oauth_token_url
    if not url.startswith(("https://", "http://")):
        reason = f"is no address of tokens, which kafka_sasl_mechanism={_OAUTH} needs"
        raise refused("kafka_oauth_token_url", url, reason, "give the OpenID provider's token endpoint, as https://…")
    return url


def _reference(setting: str, file: str) -> str:
    """What Kafka's clients replace by the file's content."""
    path = Path(_absolute(file))
    if _NO_REFERENCE.search(str(path)):
        raise refused(setting, file, "is not accepted: the path must not hold : { or }")
    return f"${{file:{path.parent}:{path.name}}}"


def _absolute(file: str) -> str:
    """Executors have another working directory than the driver."""
    return str(Path(file).absolute())


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
