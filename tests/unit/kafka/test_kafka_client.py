"""How clients of Kafka are configured: nothing secret stands in an option of Spark's, and what lacks is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from fraud_filter.config import Settings, load
from fraud_filter.errors import UsageError
from fraud_filter.kafka.client import kafka_python_config, librdkafka_config, read_password, spark_kafka_options

PASSWORD = "-".join(("correct", "horse"))


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Settings that name files, and the files."""
    made = {
        "kafka_sasl_password_file": PASSWORD,
        "kafka_ssl_ca": "the authority",
        "kafka_ssl_certificate": "a certificate",
        "kafka_ssl_key": "its key",
    }
    for name, text in made.items():
        (tmp_path / name).write_text(text)
    return {name: str(tmp_path / name) for name in made}


def scram(files: dict[str, str], **more: str) -> Settings:
    given = {name: files[name] for name in ("kafka_sasl_password_file", "kafka_ssl_ca")}
    return load(
        {"kafka_security_protocol": "SASL_SSL", "kafka_sasl_username": "me", **given, **more}, Path("/dev/null")
    )


def mutual(files: dict[str, str], **more: str) -> Settings:
    given = {name: files[name] for name in ("kafka_ssl_ca", "kafka_ssl_certificate", "kafka_ssl_key")}
    return load({"kafka_security_protocol": "SSL", **given, **more}, Path("/dev/null"))


def test_without_security_no_login_and_no_file_is_named(files: dict[str, str]) -> None:
    plain = scram(files, kafka_security_protocol="PLAINTEXT")
    assert not any("sasl" in name or "ssl" in name for name in librdkafka_config(plain))
    assert not any("sasl" in name or "ssl" in name for name in kafka_python_config(plain))
    assert spark_kafka_options(plain) == {
        "kafka.bootstrap.servers": "127.0.0.1:9092",
        "kafka.security.protocol": "PLAINTEXT",
        "kafka.request.timeout.ms": "10000",  # shorter than Kafka's: see `test_three_brokers`, a broker that hangs
        "kafka.metadata.max.age.ms": "10000",  # as `test_stack_brokers` cuts a leader off
    }


def test_a_password_file_is_read_by_our_own_clients(files: dict[str, str]) -> None:
    settings = scram(files)
    assert librdkafka_config(settings)["sasl.password"] == PASSWORD
    assert librdkafka_config(settings)["ssl.ca.location"] == files["kafka_ssl_ca"]
    assert kafka_python_config(settings)["sasl_plain_password"] == PASSWORD
    assert kafka_python_config(settings)["ssl_cafile"] == files["kafka_ssl_ca"]


def test_sparks_options_name_the_password_file_and_do_not_hold_the_password(files: dict[str, str]) -> None:
    options = spark_kafka_options(scram(files))
    assert PASSWORD not in str(options)
    folder = Path(files["kafka_ssl_ca"]).parent
    assert options["kafka.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="me" password="${{file:{folder}:kafka_sasl_password_file}}";'
    )
    assert options["kafka.config.providers"] == "file"
    assert options["kafka.config.providers.file.class"].endswith(".DirectoryConfigProvider")
    assert options["kafka.ssl.truststore.location"] == files["kafka_ssl_ca"]


def test_a_password_in_the_settings_is_quoted_for_spark() -> None:
    settings = load(
        {
            "kafka_security_protocol": "SASL_SSL",
            "kafka_sasl_mechanism": "PLAIN",
            "kafka_sasl_username": "me",
            "kafka_sasl_password": 'a"b\\c',
        },
        Path("/dev/null"),
    )
    options = spark_kafka_options(settings)
    assert options["kafka.sasl.jaas.config"].endswith(r'PlainLoginModule required username="me" password="a\"b\\c";')
    assert "kafka.config.providers" not in options


def test_our_certificate_is_given_to_every_client_and_its_key_is_in_no_option(files: dict[str, str]) -> None:
    settings = mutual(files)
    assert librdkafka_config(settings)["ssl.key.location"] == files["kafka_ssl_key"]
    assert kafka_python_config(settings)["ssl_certfile"] == files["kafka_ssl_certificate"]
    options = spark_kafka_options(settings)
    assert options["kafka.ssl.keystore.key"].endswith(":kafka_ssl_key}")
    assert options["kafka.ssl.keystore.certificate.chain"].endswith(":kafka_ssl_certificate}")
    assert not any(name.startswith("kafka.sasl") for name in options)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"kafka_sasl_username": ""},
            "kafka_sasl_username (--kafka-sasl-username, FRAUD_KAFKA_SASL_USERNAME): a user's name is needed",
        ),
        ({"kafka_sasl_password_file": ""}, "FRAUD_KAFKA_SASL_PASSWORD_FILE): a file with"),
        ({"kafka_sasl_password_file": "/nowhere/p"}, "FRAUD_KAFKA_SASL_PASSWORD_FILE): password file /nowhere/p can't"),
        (
            {"kafka_ssl_ca": "/nowhere/ca"},
            "kafka_ssl_ca (--kafka-ssl-ca, FRAUD_KAFKA_SSL_CA): '/nowhere/ca' can't be read: No such",
        ),
    ],
)
def test_what_lacks_is_named(files: dict[str, str], changes: dict[str, str], said: str) -> None:
    settings = scram(files, **changes)
    for client in (librdkafka_config, kafka_python_config, spark_kafka_options):
        with pytest.raises(UsageError) as refused:
            client(settings)
        assert said in str(refused.value)
        assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("lacking", ["kafka_ssl_key", "kafka_ssl_certificate"])
def test_a_certificate_goes_with_its_key(files: dict[str, str], lacking: str) -> None:
    with pytest.raises(UsageError, match="give both or none"):
        spark_kafka_options(mutual(files, **{lacking: ""}))


@pytest.mark.parametrize("text", ["", "two words", f"{PASSWORD}\n", 'with"quote', "back\\slash"])
def test_a_password_file_holds_the_password_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "password"
    file.write_text(text)
    with pytest.raises(UsageError, match="it must hold the password alone") as refused:
        read_password(file)
    assert not text or text not in str(refused.value)


def test_a_path_that_a_reference_can_not_hold_is_refused(tmp_path: Path, files: dict[str, str]) -> None:
    odd = tmp_path / "a:b"
    odd.write_text(PASSWORD)
    with pytest.raises(UsageError, match=r"kafka_sasl_password_file .*: the path must not hold : \{ or \}"):
        spark_kafka_options(scram(files, kafka_sasl_password_file=str(odd)))
