"""JSON behind Schema Registry's prefix, from the generator to the audit."""

from __future__ import annotations

import pytest

from exhaustive import exhaustive
from fraud_filter.audit.run import audit
from fraud_filter.generator.pace import Steady
from fraud_filter.generator.payments import MadePayments, Shares
from fraud_filter.generator.sender import Sender
from running import Stage, payment, wait_until

FORMAT = {"record_format": "json-registry"}


@pytest.mark.parametrize("mode", exhaustive(["continuous", "real-time"], but=["continuous"]))
def test_json_behind_a_schema_id_is_decided(stage: Stage, mode: str) -> None:
    settings = stage.settings().model_copy(update=FORMAT)
    made = MadePayments.for_settings(settings, Steady(500), seed=1, shares=Shares(flagged=0.3, malformed=0.2))
    sent = Sender(settings, made, count=200).run()
    bare = [payment("bare", 6000), b"\0\0", b"\1\0\0\0\0" + payment("other", 6000)]
    stage.send([("card", value) for value in bare])
    expected = (sent.flagged or 0) + sent.malformed + len(bare)
    with stage.run(mode=mode, **FORMAT) as program:
        wait_until(lambda: sum(map(len, stage.written().values())) >= expected, "all is decided", program)
        assert program.stop(60) == 0, program.tail()
    result = audit(settings)
    assert result.ok
    assert (result.expected, result.rejected) == (sent.flagged, sent.malformed + len(bare))
    assert result.reject_reasons["no-schema-id"] == len(bare)
