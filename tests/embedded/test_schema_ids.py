"""JSON behind Schema Registry's prefix, from the generator to the audit."""

from __future__ import annotations

from typing import Any

from fraud_filter.audit.run import audit
from fraud_filter.generator.payments import MadePayments, Shares
from fraud_filter.generator.sender import Sender
from fraud_filter.generator.source import Steady
from fraud_filter.query import sinks
from fraud_filter.query.preflight import check_inputs
from fraud_filter.supervisor.query_run import prepare, start
from running import Stage, payment, until


def test_json_behind_a_schema_id_is_decided(spark: Any, stage: Stage) -> None:
    own = {"record_format": "json-registry", "checkpoint": str(stage.directory / "checkpoint")}
    settings = stage.settings().model_copy(update=own)
    made = MadePayments.for_settings(settings, Steady(500), seed=1, shares=Shares(flagged=0.3, malformed=0.2))
    sent = Sender(settings, made, count=200).run()
    bare = [payment("bare", 6000), b"\0\0", b"\1\0\0\0\0" + payment("other", 6000)]
    stage.send([("card", value) for value in bare])
    expected = (sent.flagged or 0) + sent.malformed + len(bare)
    inputs = check_inputs(settings)
    query = start(sinks.write(prepare(spark, inputs, settings, "").decisions, inputs.mode, settings, 0), settings)
    try:
        until(lambda: sum(map(len, stage.written().values())) >= expected or not query.isActive, "all is decided", 90)
        assert query.exception() is None
    finally:
        query.stop()
    result = audit(settings)
    assert result.ok
    assert (result.expected, result.rejected) == (sent.flagged, sent.malformed + len(bare))
    assert result.reject_reasons["no-schema-id"] == len(bare)
