"""Every setting of the program, its default and its check.

A setting `mode` is given as `--mode`, as `FRAUD_MODE` in the environment, or as `FRAUD_MODE` in `.env`, in this
order; `FRAUD_ENV_FILE` names another file than `.env`. `KAFKA_BOOTSTRAP_SERVERS` and `SPARK_MASTER` carry no prefix
because other tools use the same names.
"""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast, get_args
from urllib.parse import urlsplit

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from fraud_filter.config.client_options import is_secret, masked, own_expression
from fraud_filter.config.kinds import (
    AbsoluteFile,
    Duration,
    KafkaSinkOptions,
    KafkaSourceOptions,
    ModeName,
    Options,
    Servers,
    ShippedFile,
    SinkName,
    SourceKind,
    SparkConf,
    Topic,
)
from fraud_filter.home import HOME

ENV_PREFIX = "FRAUD_"


#: Title of the group of settings that begins with a setting; docs/settings.md has a table of each.
GROUPS = {
    "mode": "The query",
    "kafka_bootstrap_servers": "Kafka",
    "spark_master": "Spark",
    "micro_batch_interval": "Knobs of the modes",
    "source_options": "The other sources",
    "stop_timeout_s": "Running",
}


class Settings(BaseSettings):
    """The effective configuration. Frozen: a changed setting is a new object (`load`)."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        validate_default=True,
    )

    mode: ModeName = Field("real-time", description="execution mode of the query")
    query_name: str = Field("fraud-filter", min_length=1, description="name of the query, a label of every metric")
    query: str = Field(
        "",
        description="a Python function in place of the fraud filter: FILE:FUNCTION or MODULE:FUNCTION",
    )
    payment_schema: Path = Field(HOME / "app/payment.ddl", description="Spark DDL file with the fields of a record")
    record_format: Literal["json", "json-registry"] = Field(
        "json",
        description="JSON, or JSON behind the five bytes of Schema Registry's wire format",
    )
    time_unit: Literal["none", "s", "ms", "us"] = Field(
        "none",
        description="unit of whole numbers in a TIMESTAMP field; none: it takes text alone",
    )
    rules: ShippedFile = Field(
        HOME / "app/rules.yml",
        description="YAML file with the rules; app/rules-velocity.yml has rules with velocity",
    )
    features_unsupported: Literal["refuse", "skip"] = Field(
        "refuse", description="where the mode can't compute features: refuse the rules that use them, or skip them"
    )
    source: str = Field(
        "kafka",
        min_length=1,
        description="where records come from: kafka, rate (Spark makes them), socket (lines of TCP), or a format on "
        "Spark's class path, such as text",
    )
    sink: SinkName = Field("kafka", description="where decisions go")
    emit: Literal["flagged", "all"] = Field(
        "flagged",
        description="which decisions are written: flagged and rejected records; or also the approved ones",
    )
    checkpoint: str = Field("checkpoint", min_length=1, description="path, or URI of any Hadoop file system")
    checkpoint_lock_timeout_s: float = Field(
        30,
        ge=6,
        le=120,
        description="checkpoint not on a local disk: seconds until a silent filter loses the lock",
    )

    kafka_bootstrap_servers: Servers = Field(
        "127.0.0.1:9092", validation_alias="KAFKA_BOOTSTRAP_SERVERS", description="brokers, as host:port,host:port"
    )
    input_topic: Topic = Field("payments", description="topic the records are read from")
    flagged_topic: Topic = Field("payments.flagged", description="topic flagged records are written to")
    approved_topic: Topic = Field("payments.approved", description="emit=all: topic approved records are written to")
    rejected_topic: Topic = Field("payments.rejected", description="topic unreadable records are written to")
    topics_file: Path = Field(HOME / "kafka/topics.yml", description="YAML file with the topics to create")
    starting_offsets: str = Field(
        "earliest",
        description="where a query without a checkpoint starts: earliest, latest, or offsets as Spark's JSON",
    )
    kafka_isolation_level: Literal["read_committed", "read_uncommitted"] = Field(
        "read_committed",
        description="read_uncommitted: decides records of open and aborted transactions, too",
    )
    fail_on_data_loss: bool = Field(True, description="stop when unread records were removed from the topic")
    kafka_timeout_s: float = Field(10, gt=0, le=300, description="seconds to wait for a broker's answer")
    kafka_security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="how to talk to the brokers"
    )
    kafka_sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = Field(
        "SCRAM-SHA-512", description="SASL mechanism, with a SASL_* protocol"
    )
    kafka_sasl_username: str = Field("", description="SASL user name; with OAUTHBEARER the client's id")
    kafka_sasl_password: SecretStr = Field(
        SecretStr(""), description="SASL password, or the client's secret; no option, and a file is safer"
    )
    kafka_sasl_password_file: AbsoluteFile = Field(
        "", description="file with the SASL password alone, at the same path on every Spark worker"
    )
    kafka_oauth_token_url: str = Field(
        "",
        description="OAUTHBEARER: token endpoint of the OpenID provider, such as https://login.example.org/oauth/token",
    )
    kafka_oauth_scope: str = Field("", description="OAUTHBEARER: scope to ask for, where the provider wants one")
    kafka_ssl_ca: AbsoluteFile = Field(
        "", description="PEM file with the brokers' certificate authority, at the same path on every Spark worker"
    )
    kafka_ssl_certificate: AbsoluteFile = Field(
        "", description="PEM file with the client's certificate, on every Spark worker"
    )
    kafka_ssl_key: AbsoluteFile = Field(
        "", description="PEM file with its private key (PKCS#8, not encrypted), on every Spark worker"
    )

    spark_master: str = Field("local[*]", min_length=1, validation_alias="SPARK_MASTER", description="Spark master URL")
    spark_conf: SparkConf = Field(
        default_factory=dict, description='further Spark settings, as JSON: {"spark.executor.memory": "2g"}'
    )
    ui_port: int = Field(0, ge=0, le=65535, description="port of Spark's own web page; 0 switches it off")

    micro_batch_interval: Duration = Field("0 seconds", description="trigger interval of the micro-batch modes")
    async_progress_interval_ms: int = Field(
        1000, ge=0, description="async-progress: milliseconds between two writes of the offset and commit logs"
    )
    continuous_interval: Duration = Field("5 seconds", description="continuous: epoch (checkpoint) interval")
    real_time_duration: Duration = Field("5 minutes", description="real-time: batch duration (checkpoint interval)")
    velocity_payments: int = Field(
        50, ge=2, le=1000, description="features: most records of a key that its state holds and a window sees"
    )
    velocity_partitions: int = Field(
        2,
        ge=1,
        le=1000,
        description="features, your query: partitions of the state; each takes a task slot",
    )
    velocity_lag: Duration = Field(
        "1 hour", description="features: older records are rejected as late when they are read; state is kept that long"
    )
    max_offsets_per_trigger: int = Field(0, ge=0, description="micro-batch modes: most records of a batch; 0: no limit")
    continuous_fetch_max_wait_ms: int = Field(
        1, ge=0, le=5_000, description="continuous: kafka.fetch.max.wait.ms of the source"
    )
    continuous_max_poll_records: int = Field(
        500,
        ge=1,
        le=1_000_000,
        description="continuous: kafka.max.poll.records of the source; 1 is fastest at low rates",
    )
    max_record_bytes: int = Field(
        65_536,
        ge=1,
        le=268_435_456,
        description="most bytes of a record's key and value; a larger one is rejected without them",
    )
    linger_ms: int = Field(0, ge=0, description="kafka.linger.ms of the sink")
    kafka_source_options: KafkaSourceOptions = Field(
        default_factory=dict, description='further source options, as JSON: {"kafka.max.poll.records": "1000"}'
    )
    kafka_sink_options: KafkaSinkOptions = Field(
        default_factory=dict, description='further sink options, as JSON: {"kafka.compression.type": "lz4"}'
    )

    source_options: Options = Field(
        default_factory=dict,
        description='options of other sources, as JSON: {"path": "/data/in"} of files, {"host": "127.0.0.1", "port": '
        '"9999"} of socket, {"rowsPerSecond": "100", "numPartitions": "2"} of rate',
    )

    stop_timeout_s: float = Field(30, gt=0, le=86_400, description="seconds a clean stop may take")
    start_timeout_s: float = Field(
        180, gt=0, le=86_400, description="seconds a start of Spark and of the query may take"
    )
    standby_warm_up_s: float = Field(
        30, gt=0, le=3600, description="standby: most seconds that the query runs to compile its code"
    )
    max_restarts: int = Field(10, ge=0, description="restarts in a row without progress, then exit code 4")
    restart_backoff_s: float = Field(
        1, gt=0, le=86_400, description="seconds before the first restart; they double each time, up to 30"
    )
    stall_timeout_s: float = Field(
        60,
        gt=0,
        le=86_400,
        description="seconds without progress, while the input grows, then the query is restarted",
    )
    hang_timeout_s: float = Field(
        0,
        ge=0,
        le=86_400,
        description="seconds without an answer, then Spark's Java process is killed; 0: as stall_timeout_s",
    )
    log_format: Literal["text", "json"] = Field(
        "text", description="form of the filter's log lines; json: one object a line"
    )
    latency_objective_ms: int = Field(
        0,
        ge=0,
        le=3_600_000,
        description="milliseconds that 99 of 100 decisions may take, for alerts and dashboards; 0: the mode's own",
    )
    metrics_host: str = Field("127.0.0.1", description="address the /metrics endpoints listen on")
    metrics_port: int = Field(9400, ge=0, le=65535, description="port of the filter's /metrics; 0 takes a free one")
    probe_port: int = Field(9401, ge=0, le=65535, description="port of the probe's /metrics; 0 takes a free one")

    def shown(self) -> dict[str, Any]:
        """The values by setting, as JSON has them, without secrets."""
        own = own_expression(self.spark_conf)
        values = self.model_dump(mode="json")
        return {name: masked(value, own) if isinstance(value, dict) else value for name, value in values.items()}

    def secret_spark_conf(self) -> dict[str, str]:
        """The settings of `spark_conf` that are no one else's to see."""
        own = own_expression(self.spark_conf)
        return {name: value for name, value in self.spark_conf.items() if is_secret(name, own)}

    def __repr__(self) -> str:
        return f"Settings({self.shown()})"

    __str__ = __repr__

    @property
    def source_kind(self) -> SourceKind:
        """What `source` is to the modes; "format" is any that Spark has by its name."""
        return cast(SourceKind, self.source) if self.source in get_args(SourceKind) else "format"

    @property
    def checkpoint_is_local(self) -> bool:
        """Whether the checkpoint lies on a local file system, as far as that is known without asking Hadoop."""
        scheme = urlsplit(self.checkpoint).scheme
        other_default = "spark.hadoop.fs.defaultFS" in self.spark_conf or "HADOOP_CONF_DIR" in os.environ
        return scheme == "file" or (not scheme and not other_default)

    @property
    def checkpoint_directory(self) -> Path | None:
        """The checkpoint's directory where its location names one of this machine; None: of another file system.

        `#` and `?` are letters of a name to Hadoop, whose paths have neither query nor fragment.
        """
        if not self.checkpoint_is_local:
            return None
        path = self.checkpoint.removeprefix("file:")
        return Path("/" + path[2:].partition("/")[2] if path.startswith("//") else path)


def setting_groups() -> dict[str, list[str]]:
    """The settings of each group, by its title; a group ends where the next one begins."""
    names = list(Settings.model_fields)
    starts = [*sorted(names.index(first) for first in GROUPS), len(names)]
    return {GROUPS[names[start]]: names[start:end] for start, end in pairwise(starts)}
