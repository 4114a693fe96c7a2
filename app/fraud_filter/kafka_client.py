"""How each Kafka client of this project is configured from the settings: librdkafka, kafka-python and Spark's."""

from __future__ import annotations

from typing import Any

from fraud_filter.config import Settings


def _uses_sasl(settings: Settings) -> bool:
    return settings.kafka_security_protocol.startswith("SASL_")


def librdkafka_config(settings: Settings, **extra: Any) -> dict[str, Any]:
    """Configuration of a confluent-kafka client (`extra` keys use `_` for `.`)."""
    config: dict[str, Any] = {
        "bootstrap.servers": settings.kafka_bootstrap_servers,
        "security.protocol": settings.kafka_security_protocol,
        "log_level": 2,  # refused connections are reported once, by the caller, not by the library's log
    }
    if _uses_sasl(settings):
        config |= {
            "sasl.mechanism": settings.kafka_sasl_mechanism,
            "sasl.username": settings.kafka_sasl_username,
            "sasl.password": settings.kafka_sasl_password.get_secret_value(),
        }
    if settings.kafka_ssl_ca:
        config["ssl.ca.location"] = settings.kafka_ssl_ca
    return config | {name.replace("_", "."): value for name, value in extra.items()}


def kafka_python_config(settings: Settings) -> dict[str, Any]:
    """Keyword arguments of a kafka-python client (used for administration, where speed does not matter)."""
    config: dict[str, Any] = {
        "bootstrap_servers": settings.kafka_bootstrap_servers.split(","),
        "security_protocol": settings.kafka_security_protocol,
        "request_timeout_ms": round(settings.kafka_timeout_s * 1000),
    }
    if _uses_sasl(settings):
        config |= {
            "sasl_mechanism": settings.kafka_sasl_mechanism,
            "sasl_plain_username": settings.kafka_sasl_username,
            "sasl_plain_password": settings.kafka_sasl_password.get_secret_value(),
        }
    if settings.kafka_ssl_ca:
        config["ssl_cafile"] = settings.kafka_ssl_ca
    return config


def spark_kafka_options(settings: Settings) -> dict[str, str]:
    """Connection options of Spark's Kafka source and sink, `kafka.` prefix included."""
    options = {
        "kafka.bootstrap.servers": settings.kafka_bootstrap_servers,
        "kafka.security.protocol": settings.kafka_security_protocol,
    }
    if _uses_sasl(settings):
        module = "plain.PlainLoginModule" if settings.kafka_sasl_mechanism == "PLAIN" else "scram.ScramLoginModule"
        user = settings.kafka_sasl_username
        password = settings.kafka_sasl_password.get_secret_value()
        options |= {
            "kafka.sasl.mechanism": settings.kafka_sasl_mechanism,
            "kafka.sasl.jaas.config": (
                f"org.apache.kafka.common.security.{module} required "
                f'username="{_quoted(user)}" password="{_quoted(password)}";'
            ),
        }
    if settings.kafka_ssl_ca:
        options |= {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": settings.kafka_ssl_ca}
    return options


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
