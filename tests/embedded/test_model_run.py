"""A model in the running filter, with features, audited; without them it is in all modes (`test_hdfs`)."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter.audit.result import AuditResult
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


class Run:
    """The filter in a mode with a model, while the generator sends payments with labelled fraud."""

    def __init__(self, stage: Stage, rules: Path, mode: str, **settings: str) -> None:
        self.stage, self.rules = stage, rules
        self.page = Page(*free_ports(1))
        own = {"mode": mode, "rules": str(rules), "metrics_port": str(self.page.port)}
        self.program = stage.run(**own, **settings)
        changes: dict[str, Any] = {"rules": rules, "mode": mode}
        self.settings: Settings = stage.settings().model_copy(update=changes)

    def send(self, count: int) -> AuditResult:
        """Sends payments while the filter runs, and waits until all are decided; the audit of it."""
        source = MadePayments.for_settings(load(), Steady(200), seed=3, shares=SHARES)
        sending = Thread(target=Sender(self.settings, source, count=count).run)
        with self.program:
            wait_until(lambda: self.page.values("fraud_filter_up").get("", 0) == 1, "the query runs", self.program, 180)
            sending.start()
            sending.join()
            wait_until(lambda: self.audit().lost == 0, "all payments are decided", self.program, 120)
            self.model_info = [
                sample.labels["version"]
                for family in self.page.families()
                for sample in family.samples
                if sample.name == "fraud_filter_model_info"
            ]
        return self.audit()

    def audit(self) -> AuditResult:
        return audit(self.settings, labels=True)


def _check_found(result: AuditResult) -> None:
    assert result.ok, result
    assert (result.lost, result.unexpected) == (0, 0)
    assert result.features
    assert result.features.differing == 0
    assert result.features.decisions > 100


def _check_headers(run: Run) -> None:
    records = run.stage.written()[run.stage.flagged]
    versions = {dict(record.headers)["model.version"].decode() for record in records}
    assert versions == set(run.model_info)
    assert len(versions) == 1


def _check_training_features(spark: Any, run: Run) -> None:
    """What a model learns from is what the filter has computed, payment by payment."""
    rules = read(run.rules)
    paid = read_topics(run.stage.address, run.stage.input)[run.stage.input]
    rows = [(record.partition, record.offset, record.timestamp, record.value) for record in paid]
    ddl = "_partition INT, _offset BIGINT, _ms BIGINT, _value BINARY"
    records = spark.createDataFrame(rows, ddl).withColumn("_timestamp", F.timestamp_millis("_ms"))
    learnt = history_with_features(read_payments(records, SCHEMA), rules, run.settings)
    names = [feature.name for feature in rules.features]
    by_place = {
        (row["_partition"], row["_offset"]): {name: row[name] for name in names if row[name] is not None}
        for row in learnt.collect()
    }
    flagged = run.stage.written()[run.stage.flagged]
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
    run = Run(stage, rules, "real-time", real_time_duration="10 seconds")
    result = run.send(4000)
    _check_found(result)
    _check_headers(run)
    found = result.detection
    assert found
    assert found.fraud > 200
    recall = {family: figures["recall"] or 0 for family, figures in found.families.items()}
    assert list(recall) == ["rules", "velocity", "model"]
    assert recall["velocity"] > recall["rules"]
    assert recall["model"] > recall["rules"]
    _check_training_features(spark, run)
