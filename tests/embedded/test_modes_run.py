"""Every mode against the real broker: what arrives, what does not, with which headers, a silent stop, a restart."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from faults import events, said_while_stopping
from fraud_filter.audit.run import audit
from fraud_filter.config import ModeName
from running import Stage, payment, wait_until

MODES = get_args(ModeName)
MALFORMED = {"bad-1": b"no json", "bad-2": b'{"payment_id": "x"}', "bad-3": b"\xff\x00", "bad-4": None}
REASONS = {
    "bad-1": "malformed-json",
    "bad-2": "missing-field: card_id,amount,currency,country,created_at",
    "bad-3": "malformed-json",
    "bad-4": "empty-record",
}


@pytest.mark.parametrize("mode", MODES)
def test_each_record_goes_where_it_belongs(stage: Stage, mode: str) -> None:
    flagged = {f"f{n}": payment(f"f{n}", 5000 + n) for n in range(20)}
    passed = {f"p{n}": payment(f"p{n}", 10 + n) for n in range(20)}
    records = [*flagged.items(), *passed.items(), *MALFORMED.items()]
    places = dict(zip((key for key, _ in records), stage.send(records), strict=True))
    with stage.run(mode=mode) as program:
        wait_until(
            lambda: sum(map(len, stage.written().values())) >= len(flagged) + len(MALFORMED),
            "all flagged and rejected records are written", program,
        )  # fmt: skip
        assert program.stop(30) == 0, program.tail()
        assert said_while_stopping(program) == []
        assert events(program, "stopped")
    written = stage.written()
    assert sorted(record.key.decode() for record in written[stage.flagged]) == sorted(flagged)
    assert {record.key.decode(): record.value for record in written[stage.rejected]} == MALFORMED
    for record in written[stage.flagged] + written[stage.rejected]:
        headers = {name: value.decode() for name, value in record.headers}
        partition, offset = places[record.key.decode()]
        assert headers["source.topic"] == stage.input
        assert (int(headers["source.partition"]), int(headers["source.offset"])) == (partition, offset)
        assert 0 <= record.timestamp - int(headers["source.timestamp"]) < 120_000
        if record.topic == stage.rejected:
            assert headers["reject.reason"] == REASONS[record.key.decode()]
        else:
            assert "reject.reason" not in headers
            assert json.loads(record.value)["rules"] == ["large-amount"]


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_lost_over_a_stop_and_a_restart_from_the_checkpoint(stage: Stage, mode: str) -> None:
    def send(first: int) -> None:
        stage.send((f"c{n % 7}", payment(f"p{n}", 6000 if n % 2 else 6)) for n in range(first, first + 200))

    def seen() -> set[str]:
        return {json.loads(record.value)["payment_id"] for record in stage.written()[stage.flagged]}

    send(0)
    with stage.run(mode=mode) as program:
        wait_until(lambda: len(seen()) >= 100, "the first 100 flagged payments are written", program)
        assert program.stop(30) == 0, program.tail()
    send(200)
    with stage.run(mode=mode) as program:
        wait_until(lambda: len(seen()) >= 200, "what arrived during the pause is written", program)
        send(400)
        wait_until(lambda: len(seen()) >= 300, "what arrives after the restart is written", program)
        assert program.stop(30) == 0, program.tail()
    result = audit(stage.settings())
    assert (result.expected, result.lost, result.unexpected, result.rejected) == (300, 0, 0, 0), result


@pytest.mark.parametrize("mode", ["continuous", "real-time"])
def test_too_few_task_slots_are_refused_with_both_numbers(stage: Stage, mode: str) -> None:
    program = stage.run(mode=mode)
    program._env["SPARK_MASTER"] = "local[1]"
    program.start()
    assert program.wait(180) == 2
    (message,) = [line for line in program.tail(50) if line.startswith("fraud-filter:")]
    assert "has 2 partitions, the application was granted 1 task slots" in message
    assert "1 partitions would never be read; set SPARK_MASTER=local[2]" in message
