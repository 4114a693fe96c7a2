from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from fraud_filter import config
from fraud_filter.errors import UsageError


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No `.env` of the developer's, and none of the settings in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in config.Settings.model_fields:
        monkeypatch.delenv(config.env_name(name), raising=False)


def test_the_command_line_wins_over_the_environment_and_that_over_the_env_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAUD_ENV_FILE", str(tmp_path / ".env"))
    (tmp_path / ".env").write_text("FRAUD_MODE=continuous\nFRAUD_QUERY_NAME=from-file\nFRAUD_LINGER_MS=7\n")
    monkeypatch.setenv("FRAUD_QUERY_NAME", "from-environment")
    monkeypatch.setenv("FRAUD_LINGER_MS", "8")
    settings = config.load({"linger_ms": "9"})
    assert (settings.mode, settings.query_name, settings.linger_ms) == ("continuous", "from-environment", 9)


def test_names_without_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "kafka:9092")
    monkeypatch.setenv("SPARK_MASTER", "spark://master:7077")
    settings = config.load()
    assert settings.kafka_bootstrap_servers == "kafka:9092"
    assert settings.spark_master == "spark://master:7077"
    assert config.env_name("spark_master") == "SPARK_MASTER"
    assert config.env_name("linger_ms") == "FRAUD_LINGER_MS"


def test_options_given_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAUD_SPARK_CONF", '{"spark.executor.memory": "2g"}')
    settings = config.load({"kafka_sink_options": '{"kafka.compression.type": "lz4"}'})
    assert settings.spark_conf == {"spark.executor.memory": "2g"}
    assert settings.kafka_sink_options == {"kafka.compression.type": "lz4"}


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("mode", "turbo", "'micro-batch', 'async-progress', 'continuous' or 'real-time'"),
        ("kafka_bootstrap_servers", "kafka", "host:port"),
        ("input_topic", "pay ments", "letters, digits, dots"),
        ("continuous_interval", "soon", "'5 seconds'"),
        ("linger_ms", "-1", "greater than or equal to 0"),
        ("linger_ms", "many", "integer"),
        ("probe_port", "70000", "65535"),
        ("kafka_timeout_s", "0", "greater than 0"),
    ],
)
def test_a_bad_value_is_named_with_setting_and_remedy(setting: str, value: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        config.load({setting: value})
    message = str(refused.value)
    assert f"setting {setting} " in message
    assert config.env_name(setting) in message
    assert repr(value) in message
    assert said in message
    assert "\n" not in message


def test_json_that_is_none_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAUD_SPARK_CONF", "memory=2g")
    with pytest.raises(UsageError, match=r"spark_conf.*FRAUD_SPARK_CONF.*'memory=2g'.*JSON"):
        config.load()


def test_secrets_are_masked_when_dumped() -> None:
    settings = config.load({"kafka_sasl_password": "hunter2"})
    assert isinstance(settings.kafka_sasl_password, SecretStr)
    assert "hunter2" not in settings.model_dump_json()
    assert "hunter2" not in repr(settings)
