from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import SecretStr

from fraud_filter import config
from fraud_filter.cli.main import cli
from fraud_filter.config.reading import check_names
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME


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
        ("kafka_bootstrap_servers", "kafka:9092,kafka:99999", "ports are 1 to 65535"),
        ("kafka_bootstrap_servers", "::1:9092", "[::1]:9092"),
        ("kafka_bootstrap_servers", "http://kafka:9092", "host:port"),
        ("input_topic", "pay ments", "letters, digits, dots"),
        ("continuous_interval", "soon", "'5 seconds'"),
        ("linger_ms", "-1", "greater than or equal to 0"),
        ("linger_ms", "many", "integer"),
        ("probe_port", "70000", "65535"),
        ("kafka_timeout_s", "0", "greater than 0"),
        ("kafka_isolation_level", "committed", "'read_committed' or 'read_uncommitted'"),
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


def test_the_isolation_level_is_a_setting_and_no_option() -> None:
    """The options' own text may hold secrets, and is not repeated."""
    with pytest.raises(UsageError, match=r"setting kafka_source_options .* setting kafka_isolation_level"):
        config.load({"kafka_source_options": '{"kafka.Isolation.level": "read_committed"}'})


KAFKA_REFUSED = {
    "kafka_source_options": (
        *("startingOffsets", "STARTINGOFFSETS", "startingTimestamp", "endingOffsets", "failOnDataLoss", "assign"),
        *("subscribe", "includeHeaders", "minPartitions", "maxOffsetsPerTrigger", "minOffsetsPerTrigger"),
        *("kafka.group.id", "kafka.auto.offset.reset", "kafka.enable.auto.commit", "kafka.interceptor.classes"),
        *("kafka.key.deserializer", "kafka.bootstrap.servers", "Kafka.Security.Protocol", "kafka.sasl.mechanism"),
        *("fetch.max.bytes", "kafka.acks"),
    ),
    "kafka_sink_options": (
        *("kafka.acks", "KAFKA.ACKS", "kafka.enable.idempotence", "kafka.retries", "kafka.transactional.id", "topic"),
        *("kafka.max.in.flight.requests.per.connection", "kafka.partitioner.class", "kafka.value.serializer"),
        *("kafka.linger.ms", "kafka.max.request.size", "kafka.buffer.memory", "includeHeaders", "checkpointLocation"),
        *("kafka.interceptor.classes", "kafka.fetch.max.bytes"),
    ),
}


@pytest.mark.parametrize(("setting", "name"), [(kind, name) for kind, names in KAFKA_REFUSED.items() for name in names])
def test_an_option_that_would_undo_a_promise_is_refused_by_name(setting: str, name: str) -> None:
    with pytest.raises(
        UsageError, match=rf"setting {setting} .*: {name} (may not be set|is the setting \w+: give that)"
    ):
        config.load({setting: json.dumps({name: "0"})})


@pytest.mark.parametrize(
    "name",
    [
        *("spark.sql.session.timeZone", "spark.sql.variable.substitute", "spark.sql.legacy.timeParserPolicy"),
        *("spark.sql.ansi.enabled", "spark.sql.shuffle.partitions", "spark.sql.extensions", "spark.sql.caseSensitive"),
        *("spark.sql.streaming.stateStore.providerClass", "spark.sql.streaming.noDataMicroBatches.enabled"),
        *("spark.sql.streaming.minBatchesToRetain", "spark.sql.streaming.realTimeMode.minBatchDuration"),
        *("spark.speculation", "spark.master", "spark.app.name", "spark.jars", "spark.ui.port", "spark.ui.killEnabled"),
        "spark.executor.heartbeatInterval",
    ],
)
def test_a_setting_of_spark_that_the_program_rests_on_is_refused_by_name(name: str) -> None:
    with pytest.raises(UsageError, match=f"setting spark_conf .*: {name} (may not be set|is the setting)"):
        config.load({"spark_conf": json.dumps({name: "0"})})


def test_what_users_need_of_kafka_and_spark_may_be_set() -> None:
    source = (
        *("kafka.max.poll.records", "kafka.fetch.max.wait.ms", "kafka.client.rack", "groupIdPrefix"),
        "kafka.ssl.endpoint.identification.algorithm",
    )
    sink = ("kafka.compression.type", "kafka.batch.size", "kafka.delivery.timeout.ms", "kafka.sasl.jaas.config")
    spark = (
        *("spark.executor.memory", "spark.hadoop.fs.s3a.endpoint", "spark.jars.packages", "spark.cores.max"),
        *("spark.kubernetes.namespace", "spark.yarn.queue", "spark.sql.codegen.wholeStage"),
        *("spark.sql.streaming.stateStore.minDeltasForSnapshot", "spark.sql.streaming.continuous.executorQueueSize"),
    )
    given = {"kafka_source_options": source, "kafka_sink_options": sink, "spark_conf": spark}
    loaded = config.load({setting: json.dumps(dict.fromkeys(names, "1")) for setting, names in given.items()})
    assert set(loaded.spark_conf) == set(spark)


def test_json_that_is_none_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAUD_SPARK_CONF", "memory=2g")
    with pytest.raises(UsageError, match=r"spark_conf.*FRAUD_SPARK_CONF.*JSON"):
        config.load()


@pytest.mark.parametrize("setting", ["spark_conf", "kafka_source_options", "kafka_sink_options"])
@pytest.mark.parametrize("text", ['{"spark.x.password": "hunter2"', '{"spark.x.password": ["hunter2"]}', '"hunter2"'])
def test_options_that_are_refused_are_not_repeated(setting: str, text: str) -> None:
    with pytest.raises(UsageError, match=f"setting {setting} .*the text given is not accepted") as refused:
        config.load({setting: text})
    assert "hunter2" not in str(refused.value)


def test_secrets_are_masked_when_dumped() -> None:
    settings = config.load({"kafka_sasl_password": "hunter2"})
    assert isinstance(settings.kafka_sasl_password, SecretStr)
    assert "hunter2" not in settings.model_dump_json()
    assert "hunter2" not in repr(settings)


SECRET_OPTIONS = (
    *("spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.s3a.access.key", "spark.ssl.keyPassword", "spark.my.Token"),
    *("kafka.sasl.jaas.config", "kafka.ssl.keystore.key", "kafka.ssl.truststore.certificates", "sasl.jaas.config"),
    *("kafka.ssl.key.password", "spark.authenticate.secret", "kafka.ssl.keystore.certificate.chain"),
)


def test_secrets_among_options_are_masked() -> None:
    kafka = {option: "hunter2" for option in SECRET_OPTIONS if option.startswith("kafka.")}
    options = dict.fromkeys(SECRET_OPTIONS, "hunter2") | {"spark.executor.memory": "2g"}
    given = {"spark_conf": json.dumps(options)}
    given |= {name: json.dumps(kafka) for name in ("kafka_source_options", "kafka_sink_options")}
    settings = config.load(given)
    for name in given:
        shown = settings.shown()[name]
        assert {shown[option] for option in SECRET_OPTIONS if option in shown} == {"**********"}
        assert set(getattr(settings, name).values()) <= {"hunter2", "2g"}
    assert settings.shown()["spark_conf"]["spark.executor.memory"] == "2g"
    assert "hunter2" not in repr(settings) + str(settings)
    assert set(settings.secret_spark_conf()) == set(SECRET_OPTIONS)
    printed = CliRunner().invoke(cli, ["config", "--spark-conf", given["spark_conf"]])
    assert printed.exit_code == 0
    assert "hunter2" not in printed.output
    assert '"spark.executor.memory": "2g"' in printed.output


def test_ones_own_redaction_adds_to_spark_s() -> None:
    conf = {"spark.redaction.regex": "(?i)pin[.]code", "spark.x.PIN.code": "hunter2", "spark.x.password": "hunter3"}
    assert set(config.load({"spark_conf": json.dumps(conf)}).secret_spark_conf()) == {
        "spark.x.PIN.code",
        "spark.x.password",
    }


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("FRAUD_MOED", "did you mean 'FRAUD_MODE'?"),
        ("fraud_moed", "did you mean 'FRAUD_MODE'?"),
        ("FRAUD_CHECKPIONT", "did you mean 'FRAUD_CHECKPOINT'?"),
        ("FRAUD_ENVFILE", "did you mean 'FRAUD_ENV_FILE'?"),
        ("FRAUD_BOOTSTRAP_SERVERS", "did you mean 'FRAUD_KAFKA_BOOTSTRAP_SERVERS'?"),
        ("FRAUD_QQQ", "no setting; change it"),
    ],
)
def test_a_name_that_is_no_setting_is_refused_with_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    monkeypatch.setenv("FRAUD_ENV_FILE", str(tmp_path / ".env"))
    (tmp_path / ".env").write_text(f"FRAUD_LINGER_MS=1\n{name}=continuous\nHOME_OF_OTHERS=x\n")
    with pytest.raises(UsageError) as refused:
        config.load()
    assert str(refused.value).startswith(f"{name} in {tmp_path}/.env is no setting")
    assert said in str(refused.value)
    (tmp_path / ".env").unlink()
    monkeypatch.setenv(name, "")
    with pytest.raises(UsageError, match=f"{name} in the environment is no setting") as refused:
        config.load()
    assert said in str(refused.value)


def test_all_names_that_are_no_settings_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAUD_MOED", "continuous")
    monkeypatch.setenv("FRAUD_LINGER", "1")
    with pytest.raises(UsageError) as refused:
        config.load()
    assert {line.split()[0] for line in str(refused.value).splitlines()} == {"FRAUD_MOED", "FRAUD_LINGER"}


@pytest.mark.parametrize(
    "name",
    [
        *("FRAUD_TEST_PROMETHEUS", "FRAUD_TEST_BROWSER"),  # for our tests
        "FRAUD_FILTER_PORT_9400_TCP",  # of Kubernetes, about a service fraud-filter
        *("FRAUD_FILTER_SERVICE_HOST", "FRAUD_PROBE_SERVICE_PORT_METRICS", "FRAUD_PROBE_PORT_9401_TCP_ADDR"),
        *("FRAUD_SPARK_MASTER", "FRAUD_KAFKA_BOOTSTRAP_SERVERS", "Fraud_Mode"),  # they are read
    ],
)
def test_names_of_others_are_left_alone(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    value = {"FRAUD_KAFKA_BOOTSTRAP_SERVERS": "kafka:9092", "Fraud_Mode": "continuous"}.get(name, "x")
    monkeypatch.setenv(name, value)
    config.load()


def test_every_name_of_the_compose_files_and_of_their_example_is_known() -> None:
    names = re.findall(r"\bFRAUD_\w+", "".join(file.read_text() for file in HOME.glob("docker-compose*.yml")))
    assert "FRAUD_FILTER_CPUS" in names
    check_names(names, "the Compose files")
    assert config.load(env_file=HOME / ".env.example").mode == config.Settings.model_fields["mode"].default


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"flagged_topic": "payments"},
            "flagged_topic (--flagged-topic, FRAUD_FLAGGED_TOPIC): 'payments' is the input_topic",
        ),
        ({"input_topic": "payments.rejected"}, "rejected_topic (--rejected-topic, FRAUD_REJECTED_TOPIC)"),
        (
            {"approved_topic": "payments", "emit": "all"},
            "'payments' is the input_topic already; decisions need topics of their own",
        ),
    ],
)
def test_no_decision_goes_to_the_input(given: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        config.load(given)


@pytest.mark.parametrize(
    ("given", "topics"),
    [
        ({}, ["flagged_topic", "rejected_topic"]),
        ({"approved_topic": "payments"}, ["flagged_topic", "rejected_topic"]),
        ({"emit": "all"}, ["flagged_topic", "approved_topic", "rejected_topic"]),
        ({"emit": "all", "approved_topic": "payments.flagged"}, ["flagged_topic", "rejected_topic"]),
        ({"emit": "all", "rejected_topic": "payments.approved"}, ["flagged_topic", "approved_topic"]),
        ({"rejected_topic": "payments.flagged"}, ["flagged_topic"]),
    ],
)
def test_decisions_go_to_one_topic_or_to_one_each(given: dict[str, str], topics: list[str]) -> None:
    assert config.output_topics(config.load(given)) == topics


@pytest.mark.parametrize(
    "line", ["FRAUD_MODE real-time", "FRAUD_MODE", "hunter2 is the password", "FRAUD_MODE: real-time"]
)
def test_a_line_without_an_equals_sign_is_named(line: str, tmp_path: Path) -> None:
    env = tmp_path / ".env"
    env.write_text(f"# a comment\n\n{line}\nFRAUD_LINGER_MS=1\n")
    with pytest.raises(UsageError, match=f"{env}, line 3 is no NAME=value"):
        config.load(env_file=env)


def test_java_options_set_no_settings_of_spark() -> None:
    options = {"spark.driver.extraJavaOptions": "-Xss2m -Dspark.sql.legacy.timeParserPolicy=LEGACY"}
    with pytest.raises(UsageError, match=r"spark\.driver\.extraJavaOptions sets Spark's settings by -Dspark"):
        config.load({"spark_conf": json.dumps(options)})


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    """Its options could make the program run their code."""
    file = tmp_path / ".env"
    file.write_text("FRAUD_MODE=continuous\n")
    file.chmod(mode)
    with pytest.raises(UsageError, match="can be written by others"):
        config.load(env_file=file)
    file.chmod(0o644)
    assert config.load(env_file=file).mode == "continuous"


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / ".env"
    file.touch()
    if os.geteuid() == 0:
        os.chown(file, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        monkeypatch.setattr("fraud_filter.config.reading.HOME", Path("/"))
    with pytest.raises(UsageError, match="belongs to another user"):
        config.load(env_file=file)


@pytest.mark.parametrize("setting", config.GONE)
def test_a_setting_that_is_gone_is_refused_with_what_to_do(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(config.env_name(setting), "1")
    with pytest.raises(UsageError, match=rf"is no setting any more: {re.escape(config.GONE[setting])}"):
        config.load()
