"""Every setting of the program in the stack's `.env` is in force inside the container."""

from __future__ import annotations

import json
from pathlib import Path

from deployed import Deployed, make_env
from fraud_filter.compose import env_file, images
from fraud_filter.compose.checks import INSIDE
from fraud_filter.config import Settings, env_name

PROJECT = "fraud-filter-test-settings"

#: For each setting a value that no default has.
VALUES = {
    "mode": "async-progress",
    "query_name": "another-name",
    "payment_schema": "conf/orders.ddl",
    "record_format": "json-registry",
    "time_unit": "ms",
    "rules": "conf/orders.yml",
    "features_unsupported": "skip",
    "source": "rate",
    "sink": "console",
    "emit": "all",
    "checkpoint": "/var/lib/fraud-filter/another",
    "checkpoint_lock_timeout_s": 40.0,
    "kafka_bootstrap_servers": "127.0.0.1:29999",
    "input_topic": "orders",
    "flagged_topic": "orders.flagged",
    "approved_topic": "orders.approved",
    "rejected_topic": "orders.rejected",
    "topics_file": "conf/topics.yml",
    "starting_offsets": "latest",
    "kafka_isolation_level": "read_uncommitted",
    "fail_on_data_loss": False,
    "kafka_timeout_s": 11.0,
    "kafka_security_protocol": "SASL_SSL",
    "kafka_sasl_mechanism": "PLAIN",
    "kafka_sasl_username": "somebody",
    "kafka_sasl_password": "secret",
    "kafka_sasl_password_file": "conf/password",
    "kafka_oauth_token_url": "https://login.example.org/token",
    "kafka_oauth_scope": "kafka",
    "kafka_ssl_ca": "conf/ca.crt",
    "kafka_ssl_certificate": "conf/client.crt",
    "kafka_ssl_key": "conf/client.key",
    "spark_master": "spark://elsewhere:7077",
    "spark_conf": {"spark.task.maxFailures": "5"},
    "ui_port": 4999,
    "micro_batch_interval": "2 seconds",
    "async_progress_interval_ms": 2000,
    "continuous_interval": "6 seconds",
    "real_time_duration": "6 minutes",
    "velocity_payments": 51,
    "velocity_partitions": 3,
    "velocity_lag": "2 hours",
    "max_offsets_per_trigger": 1,
    "continuous_fetch_max_wait_ms": 2,
    "continuous_max_poll_records": 501,
    "max_record_bytes": 1000,
    "linger_ms": 1,
    "kafka_source_options": {"kafka.max.poll.records": "1000"},
    "kafka_sink_options": {"kafka.compression.type": "lz4"},
    "source_options": {"path": "/data/in"},
    "stop_timeout_s": 31.0,
    "start_timeout_s": 181.0,
    "standby_warm_up_s": 16.0,
    "max_restarts": 11,
    "restart_backoff_s": 2.0,
    "stall_timeout_s": 61.0,
    "hang_timeout_s": 62.0,
    "log_format": "json",
    "latency_objective_ms": 250,
    "metrics_host": "127.0.0.2",
    "metrics_port": 9500,
    "probe_port": 9501,
}
#: What a container has of its own: where it listens, and the stack's broker.
OWN = {
    "metrics_host": "0.0.0.0",  # noqa: S104 - in its container
    "metrics_port": 9400,
    "probe_port": 9401,
    "ui_port": 4040,
    "kafka_bootstrap_servers": "kafka:9092",
}


def test_every_setting_reaches_the_filter(tmp_path: Path) -> None:
    assert set(VALUES) == set(Settings.model_fields)
    defaults = Settings.model_construct()
    assert [name for name, value in VALUES.items() if value == getattr(defaults, name)] == []
    written = {env_name(name): value if isinstance(value, str) else json.dumps(value) for name, value in VALUES.items()}
    deployed = Deployed(make_env(tmp_path / ".env", COMPOSE_PROJECT_NAME=PROJECT))
    for name, value in written.items():
        env_file.change(deployed.env, name, value)
    stack = deployed.open()
    try:
        images.prepare(stack)
        shown = stack.compose(
            "run", "--rm", "--no-deps", "--quiet-pull", "fraud-filter", "fraud-filter", "config", "--json"
        )
        assert shown.returncode == 0, shown.stdout
        found = json.loads(shown.stdout[shown.stdout.index("{") :])
    finally:
        stack.compose("down", "--volumes")
    secret = {"kafka_sasl_password": "**********"}
    # A program in a container starts in /tmp, and makes these whole, as executors start elsewhere.
    whole = [name for name in VALUES if name.startswith(("kafka_ssl_", "kafka_sasl_password_f"))]
    files = {name: str(Path("/tmp") / str(VALUES[name])) for name in whole}  # noqa: S108
    assert found == {**VALUES, **files, **secret, **OWN}


def test_what_is_not_obeyed_is_told() -> None:
    """The published ports and Kafka's address have other lines; `up` speaks of the rest."""
    told = {*INSIDE, "FRAUD_METRICS_PORT", "FRAUD_PROBE_PORT", "KAFKA_BOOTSTRAP_SERVERS"}
    assert {env_name(name) for name in OWN} == told
