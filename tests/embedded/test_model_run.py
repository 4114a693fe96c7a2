"""A model in the running filter, with features, audited; without them it is in all modes (`test_hdfs`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from filter_under_load import require_features
from fraud_filter.audit.run import audit
from fraud_filter.config import Settings, load
from fraud_filter.generator.payments import MadePayments, Shares
from fraud_filter.generator.sender import Sender
from fraud_filter.generator.source import Steady
from fraud_filter.query.decide import read_payments
from fraud_filter.train import history_with_features
from lab.harness.processes import free_ports
from metrics_page import Page
from models import SCHEMA, SHIPPED, read, train, with_model
from running import Stage, read_topics, wait_until

SHARES = Shares(flagged=0.2, malformed=0.01, fraud=0.1)


def _decided(stage: Stage, settings: Settings) -> list[str]:
    """Runs the filter until 4,000 payments with labelled fraud are decided; the versions of models that it told."""
    page = Page(*free_ports(1))
    source = MadePayments.for_settings(load(), Steady(200), seed=3, shares=SHARES)
    own = {"mode": settings.mode, "rules": str(settings.rules), "metrics_port": str(page.port)}
    with stage.run(**own, real_time_duration="10 seconds") as program:
        wait_until(lambda: page.values("fraud_filter_up").get("", 0) == 1, "the query runs", program, 180)
        Sender(settings, source, count=4000).run()
        wait_until(lambda: audit(settings).lost == 0, "all payments are decided", program, 120)
        return [sample.labels["version"] for sample in page.samples("fraud_filter_model_info")]


def _check_training_features(spark: Any, stage: Stage, settings: Settings) -> None:
    """What a model learns from is what the filter has computed, payment by payment."""
    rules = read(settings.rules)
    paid = read_topics(stage.address, stage.input)[stage.input]
    rows = [(record.partition, record.offset, record.timestamp, record.value) for record in paid]
    ddl = "_partition INT, _offset BIGINT, _ms BIGINT, _value BINARY"
    records = spark.createDataFrame(rows, ddl).withColumn("_timestamp", F.timestamp_millis("_ms"))
    learnt = history_with_features(read_payments(records, SCHEMA), rules, settings)
    names = [feature.name for feature in rules.features]
    by_place = {
        (row["_partition"], row["_offset"]): {name: row[name] for name in names if row[name] is not None}
        for row in learnt.collect()
    }
    flagged = stage.written()[stage.flagged]
    for record in flagged:
        headers, payment = dict(record.headers), json.loads(record.value)
        place = int(headers["source.partition"]), int(headers["source.offset"])
        assert {name: payment[name] for name in names if name in payment} == by_place[place]
    assert len(flagged) > 500


@pytest.mark.timeout(900)
def test_features_and_model_in_real_time_mode(spark: Any, stage: Stage, tmp_path: Path) -> None:
    decayed = "features:\n  - {name: pace, per: card_id, decay: 1 minute, value: count}\n"
    rules = with_model(tmp_path, SHIPPED.replace("features:\n", decayed))
    trained = train(spark, read(rules), tmp_path / "model")
    assert {"payments_2m", "countries_1m", "pace"} <= set(trained.inputs)
    assert "card_id" not in trained.inputs
    assert trained.auc > 0.9
    settings = stage.settings().model_copy(update={"rules": rules, "mode": "real-time"})
    versions = _decided(stage, settings)
    written = {dict(record.headers)["model.version"].decode() for record in stage.written()[stage.flagged]}
    assert written == set(versions)
    assert len(written) == 1
    result = audit(settings, labels=True)
    assert result.ok, result
    require_features(result)
    found = result.detection
    assert found
    assert found.fraud > 200
    recall = {family: figures["recall"] or 0 for family, figures in found.families.items()}
    assert list(recall) == ["rules", "velocity", "model"]
    assert recall["velocity"] > recall["rules"]
    assert recall["model"] > recall["rules"]
    _check_training_features(spark, stage, settings)
