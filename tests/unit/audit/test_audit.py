"""The audit's books, its range of offsets, its arguments and its report, without a broker."""

from __future__ import annotations

import io
import json
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from fraud_filter.audit.gaps import Gap, find_missing
from fraud_filter.audit.ledger import FLAGGED, PASSED, REJECTED, Finding, Ledger
from fraud_filter.audit.report import print_audit
from fraud_filter.audit.result import AuditResult
from fraud_filter.audit.run import _range
from fraud_filter.audit.spill import Spill
from fraud_filter.cli.audit import command
from fraud_filter.config import load
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.oracle import Decision
from fraud_filter.query.source_headers import Source
from fraud_filter.schema import Field, PaymentSchema

SCHEMA = PaymentSchema(
    (Field("id", "STRING", True), Field("amount", "DOUBLE", True), Field("at", "TIMESTAMP_NTZ", False))
)
FIELDS = ("p", 5.0, 1_000_500)


AT_MS = 1_700_000_000_000


def source(offset: int, reason: str = "", partition: int = 0, timestamp_ms: int = AT_MS) -> Source:
    return Source("payments", partition, offset, timestamp_ms, reason)


class Books(Ledger):
    """A ledger whose payments come at the end, after all that a test lets it see."""

    def __init__(
        self,
        *payments: tuple[int, bytes | None, bytes | None, Decision],
        start: int = 10,
        end: int = 16,
        group_offsets: int = 2,
    ) -> None:
        super().__init__(SCHEMA, {0: start}, {0: end}, 3, group_offsets)
        self._payments = payments

    def close(self) -> int:
        for offset, key, value, decision in self._payments:
            self.expect(0, offset, AT_MS, key, value, decision)
        return super().close()


@pytest.fixture
def ledger() -> Books:
    """Offsets 10 to 15: two flagged, one passed, one rejected, a gap at 14, flagged by two."""
    return Books(
        (10, b"k", b"{}", Decision(None, ("large",), FIELDS)),
        (11, b"k", b"{}", Decision(None, ("large",), FIELDS)),
        (12, b"k", b"{}", Decision(None, (), FIELDS)),
        (13, b"k", b"bad", Decision("malformed-json", (), ())),
        (15, None, b"{}", Decision(None, ("large", "night"), ("q", 7.0, None))),
    )


def _settle(ledger: Books) -> None:
    """Everything as it should be."""
    ledger.see_flagged(source(10), b"k", FIELDS, ("large",))
    ledger.see_flagged(source(11), b"k", FIELDS, ("large",))
    ledger.see_rejected(source(13, "malformed-json"), b"k", b"bad")
    ledger.see_flagged(source(15), None, ("q", 7.0, None), ("large", "night"))


def _reasons(ledger: Books, kind: str) -> list[str]:
    return [finding.reason for finding in ledger.examples[kind]]


def test_all_is_well(ledger: Books) -> None:
    _settle(ledger)
    assert ledger.close() == 0
    assert (ledger.written, ledger.duplicated, ledger.unexpected, ledger.rejected) == (3, 0, 0, 1)
    assert [ledger.expected[kind] for kind in (FLAGGED, PASSED, REJECTED)] == [3, 1, 1]
    assert ledger.reject_reasons == {"malformed-json": 1}


def test_what_is_missing_is_lost_flagged_and_rejected_alike(ledger: Books) -> None:
    ledger.see_flagged(source(10), b"k", FIELDS, ("large",))
    assert ledger.close() == 3
    assert ledger.examples["lost"] == [
        Finding(0, 11, "should be flagged by large"),
        Finding(0, 13, "should be rejected as malformed-json"),
        Finding(0, 15, "should be flagged by large, night"),
    ]
    assert ledger.undecided == 3


def test_what_is_missing_before_the_last_decision_is_no_longer_to_be_decided(ledger: Books) -> None:
    ledger.see_flagged(source(10), b"k", FIELDS, ("large",))
    ledger.see_rejected(source(13, "malformed-json"), b"k", b"bad")
    assert (ledger.close(), ledger.undecided) == (2, 1)  # 11 and 15, and 15 alone


def test_without_any_decision_all_may_be_to_come(ledger: Books) -> None:
    assert (ledger.close(), ledger.undecided) == (4, 4)


def test_features_are_compared_and_told_apart_from_other_fields() -> None:
    schema = PaymentSchema((*SCHEMA.fields, Field("spent", "DOUBLE", False)))
    ledger = Ledger(schema, {0: 10}, {0: 14}, 3, features=["spent"])
    for offset, spent in ((10, 5.0), (11, 6.0), (12, 5.0)):
        ledger.see_flagged(source(offset), b"k", (*FIELDS, spent), ("large",))
    ledger.see_flagged(source(12), b"k", ("q", *FIELDS[1:], 5.0), ("large",))
    for offset in (10, 11, 12):
        ledger.expect(0, offset, AT_MS, b"k", b"{}", Decision(None, ("large",), (*FIELDS, 5.0)))
    assert ledger.close() == 0
    assert (ledger.compared, ledger.differing, ledger.unexpected) == (4, 1, 2)
    assert ledger.examples["unexpected"][0].reason == "written with another spent than the record's"


def test_payments_whose_features_no_one_can_tell_are_neither_lost_nor_unexpected() -> None:
    ledger = Ledger(SCHEMA, {0: 10}, {0: 14}, 3, features=["amount"])
    ledger.see_flagged(source(10), b"k", FIELDS, ("large",))
    ledger.see_rejected(source(12, "malformed-json"), b"k", b"{}")
    for offset in (10, 11, 12):
        ledger.pass_over(0, offset)
    assert ledger.close() == 0
    assert (ledger.untold, ledger.written, ledger.compared) == (3, 1, 0)
    assert _reasons_of(ledger) == ["rejected (malformed-json), but it is valid"]


def _reasons_of(ledger: Ledger) -> list[str]:
    return [finding.reason for finding in ledger.examples["unexpected"]]


def test_copies_are_duplicates_and_no_fault(ledger: Books) -> None:
    _settle(ledger)
    ledger.see_flagged(source(10), b"k", FIELDS, ("large",))
    ledger.see_flagged(source(10), b"k", FIELDS, ("large",))
    ledger.see_rejected(source(13, "malformed-json"), b"k", b"bad")
    assert (ledger.close(), ledger.duplicated, ledger.unexpected) == (0, 3, 0)
    assert _reasons(ledger, "duplicated") == ["flagged again", "flagged again", "rejected again"]
    assert (ledger.written, ledger.rejected) == (5, 1)


@pytest.mark.parametrize(
    ("offset", "reason"),
    [
        (12, "flagged by large, but it matches no rule"),
        (13, "flagged by large, but it is not valid"),
        (14, "flagged by large, but no record has this offset"),
    ],
)
def test_flagged_without_cause(ledger: Books, offset: int, reason: str) -> None:
    _settle(ledger)
    ledger.see_flagged(source(offset), b"k", FIELDS, ("large",))
    assert (ledger.close(), ledger.unexpected) == (0, 1)
    assert _reasons(ledger, "unexpected") == [reason]


@pytest.mark.parametrize("offset", [10, 12, 14])
def test_rejected_without_cause(ledger: Books, offset: int) -> None:
    _settle(ledger)
    ledger.see_rejected(source(offset, "wrong-type: amount"), b"k", b"{}")
    assert (ledger.close(), ledger.unexpected, ledger.rejected) == (0, 1, 2)
    assert "rejected (wrong-type: amount), but" in _reasons(ledger, "unexpected")[0]


def test_a_time_without_zone_is_written_in_milliseconds(ledger: Books) -> None:
    ledger.see_flagged(source(10), b"k", ("p", 5.0, 1_000_000), ("large",))
    ledger.see_flagged(source(11), b"k", ("p", 5.0, 1_001_000), ("large",))
    ledger.close()
    assert [finding.offset for finding in ledger.examples["unexpected"]] == [11]


def test_another_reason_for_a_rejection_is_no_fault(ledger: Books) -> None:
    _settle(ledger)
    ledger.see_rejected(source(13, "wrong-type: amount"), b"k", b"bad")
    assert (ledger.close(), ledger.unexpected) == (0, 0)
    assert ledger.reject_reasons == {"malformed-json": 1, "wrong-type": 1}


def test_unreadable_headers_are_unexpected_and_examples_are_limited(ledger: Books) -> None:
    for offset in range(5):
        ledger.see_unreadable(1, offset, "payments.flagged")
    assert ledger.unexpected == 5
    assert ledger.examples["unexpected"][0] == Finding(
        1, 0, "record of payments.flagged without readable source headers"
    )
    assert len(ledger.examples["unexpected"]) == 3


def test_numbers_that_python_hashes_alike_differ() -> None:
    books = Books((0, None, b"", Decision(None, ("r",), ("None", -1.0, None))), start=0, end=2)
    books.see_flagged(source(0), None, ("None", -2.0, None), ("r",))
    books.see_flagged(source(0), None, (None, -1.0, None), ("r",))
    books.close()
    assert _reasons(books, "unexpected") == [
        "written with another amount than the record's",
        "written with another id than the record's",
    ]


@pytest.mark.parametrize("timestamp_ms", [AT_MS - 1, AT_MS + 1, 0, -(2**70), 2**70])
def test_a_decision_with_another_time_is_about_another_payment(ledger: Books, timestamp_ms: int) -> None:
    _settle(ledger)
    ledger.see_flagged(source(10, timestamp_ms=timestamp_ms), b"k", FIELDS, ("large",))
    ledger.see_rejected(source(13, "malformed-json", timestamp_ms=timestamp_ms), b"k", b"bad")
    assert (ledger.close(), ledger.unexpected, ledger.duplicated) == (0, 2, 0)
    assert all(f"but the record's is {AT_MS}" in reason for reason in _reasons(ledger, "unexpected"))


def test_a_payment_with_a_decision_of_another_time_alone_is_lost(ledger: Books) -> None:
    ledger.see_flagged(source(10, timestamp_ms=AT_MS - 5), b"k", FIELDS, ("large",))
    assert (ledger.close(), ledger.unexpected) == (4, 1)
    assert ledger.examples["lost"][0] == Finding(0, 10, "should be flagged by large")


def test_decisions_on_what_was_removed_while_the_outputs_were_read_are_left_out() -> None:
    books = Books((12, b"k", b"{}", Decision(None, ("large",), FIELDS)))
    for offset in range(10, 13):
        books.see_flagged(source(offset), b"k", FIELDS, ("large",))
    books.begin_at({0: 12})
    assert (books.close(), books.unexpected, books.written) == (0, 0, 1)


def test_memory_does_not_grow_with_the_payments() -> None:
    """Ten times the payments, a tenth of them flagged and decided in any order: the peak is that of a group."""
    peaks = [_peak(count) for count in (20_000, 200_000)]
    assert peaks[1] < peaks[0] + 90_000, peaks  # half a byte a payment


def _peak(count: int) -> int:
    books = Ledger(SCHEMA, {0: 0, 1: 0}, {0: count // 2, 1: count // 2}, 10, group_offsets=1000, held_bytes=10_000)
    tracemalloc.start()
    try:
        for number in range(count // 20):
            for partition in (0, 1):
                offset = number * 7919 % (count // 20) * 10
                books.see_flagged(source(offset, partition=partition), b"k", FIELDS, ("large",))
        for offset in range(count // 2):
            for partition in (0, 1):
                decision = Decision(None, () if offset % 10 else ("large",), FIELDS)
                books.expect(partition, offset, AT_MS, b"k", b"{}", decision)
        assert (books.close(), books.written, books.unexpected) == (0, count // 10, 0)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    spill = Spill(4, held_bytes=8)
    spill.add((0, 0), b"1234")
    with pytest.raises(FraudFilterError, match="TMPDIR names another place"):
        spill.add((0, 0), b"1234")


def test_rows_come_back_in_their_order_from_memory_and_disk() -> None:
    spill = Spill(4, held_bytes=12)
    rows = [f"{number:04}".encode() for number in range(20)]
    for number, row in enumerate(rows):
        spill.add((number % 3, 0), row)
    assert spill.groups() == [(0, 0), (1, 0), (2, 0)]
    assert [b"".join(spill.take((group, 0))) for group in range(3)] == [b"".join(rows[at::3]) for at in range(3)]
    assert spill.groups() == []


def test_the_range_ends_outside_and_at_unknown_partitions(ledger: Books) -> None:
    assert [ledger.covers(source(offset)) for offset in (9, 10, 15, 16)] == [False, True, True, False]
    assert not ledger.covers(source(10, partition=1))
    assert not ledger.covers(source(10, partition=-1))


BOUNDS = {0: (5, 20), 1: (0, 0)}


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ({}, {}, ({0: 5, 1: 0}, {0: 20, 1: 0})),
        ({0: 7}, {0: 9}, ({0: 7, 1: 0}, {0: 9, 1: 0})),
        ({0: 1}, {}, ({0: 5, 1: 0}, {0: 20, 1: 0})),
        ({0: 1}, {0: 3}, ({0: 3, 1: 0}, {0: 3, 1: 0})),
        ({}, {0: 3}, ({0: 3, 1: 0}, {0: 3, 1: 0})),
        ({0: 20}, {}, ({0: 20, 1: 0}, {0: 20, 1: 0})),
    ],
)
def test_the_range_is_what_is_retained_of_what_is_wanted(
    start: dict[int, int], end: dict[int, int], expected: tuple[dict[int, int], dict[int, int]]
) -> None:
    assert _range(load(), BOUNDS, start, end) == expected


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        ({2: 0}, {}, "has no partition 2; it has 0, 1"),
        ({}, {0: 21}, "partition 0: offsets 5 to 21 can't be audited"),
        ({0: 9}, {0: 8}, "partition 0: offsets 9 to 8 can't be audited"),
        ({0: 21}, {}, "where the topic ends"),
    ],
)
def test_a_range_outside_the_topic_is_a_usage_error(start: dict[int, int], end: dict[int, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        _range(load(), BOUNDS, start, end)


@pytest.mark.parametrize("text", ["x", "[1]", "3", '{"a": 1}', '{"0": -1}', '{"0": "5"}', '{"0": 1.5}', '{"0": true}'])
@pytest.mark.parametrize("argument", ["--from", "--to"])
def test_offsets_that_are_none_are_a_usage_error(argument: str, text: str) -> None:
    result = CliRunner().invoke(command, [argument, text])
    assert isinstance(result.exception, UsageError)
    assert f"argument {argument}: {text!r} is not accepted" in str(result.exception)


def test_an_unreachable_broker_is_a_usage_error() -> None:
    arguments = ["--kafka-bootstrap-servers", "127.0.0.1:1", "--kafka-timeout-s", "1"]
    result = CliRunner().invoke(command, arguments)
    assert isinstance(result.exception, UsageError)
    assert "no Kafka broker answered at '127.0.0.1:1'" in str(result.exception)


def _result(**changes: Any) -> AuditResult:
    plain: dict[str, Any] = {
        "start": {0: 0}, "end": {0: 5}, "payments": 5, "expected": 2, "written": 2, "lost": 0, "undecided": 0,
        "duplicated": 0, "unexpected": 0, "rejected": 1, "rejected_expected": 1,
        "reject_reasons": {"malformed-json": 1}, "examples": {"lost": (), "duplicated": (), "unexpected": ()},
        "took_s": 0.1,
    }  # fmt: skip
    return AuditResult(**(plain | changes))


def _printed(result: AuditResult) -> str:
    console = Console(file=io.StringIO(), width=100)
    print_audit(result, load(), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_verdict() -> None:
    assert _result().ok
    assert _result(duplicated=7).ok
    assert not _result(lost=1).ok
    assert not _result(unexpected=1).ok
    assert not _result(gaps=(Gap(0, 3, 7),)).ok


def test_what_was_removed_before_it_was_decided_is_told_by_its_offsets() -> None:
    text = _printed(_result(gaps=(Gap(0, 3, 7), Gap(1, 0, 2000))))
    assert "removed: partition 0 offsets 3 to 6 (4 payments)" in text
    assert "2,004" in text
    assert _result(gaps=(Gap(0, 3, 7),)).to_dict()["gaps"] == [{"partition": 0, "start": 3, "end": 7}]


@pytest.mark.parametrize(
    ("start", "end", "first", "missing"),
    [
        ({}, {}, {0: 5}, []),
        ({0: 5}, {}, {0: 5}, []),
        ({0: 2}, {}, {0: 5}, [Gap(0, 2, 5)]),
        ({0: 2}, {0: 4}, {0: 4}, [Gap(0, 2, 4)]),
        ({}, {0: 4}, {0: 4}, [Gap(0, 0, 4)]),
        ({}, {0: 0}, {0: 0}, []),
        ({0: 4}, {0: 4}, {0: 4}, []),
        ({1: 0}, {0: 9, 1: 9}, {0: 5, 1: 3}, [Gap(1, 0, 3)]),
    ],
)
def test_what_was_asked_for_and_is_not_retained_is_missing(
    start: dict[int, int], end: dict[int, int], first: dict[int, int], missing: list[Gap]
) -> None:
    assert find_missing(start, end, first) == tuple(missing)


def test_what_was_not_audited_is_told() -> None:
    assert _result().complete
    assert not _result(payments=0).complete
    result = _result(missing=(Gap(0, 3, 7),))
    assert (result.ok, result.complete) == (True, False)
    text = _printed(result)
    assert "not audited, no longer retained: partition 0 offsets 3 to 6 (4 payments)" in text
    assert "--allow-gap takes that" in text
    assert "nothing lost" not in text
    figures = result.to_dict()
    assert (figures["complete"], figures["missing"]) == (False, [{"partition": 0, "start": 3, "end": 7}])


def test_the_report_shows_counts_examples_and_verdict() -> None:
    assert "nothing lost, nothing unexpected" in _printed(_result())
    text = _printed(_result(lost=1234, examples={"lost": (Finding(0, 3, "should be flagged by [x]"),)}))
    assert "1,234" in text
    assert "lost: partition 0, offset 3: should be flagged by [x]" in text
    assert "the output is not what it should be" in text
    assert "still to decide" not in text


def test_a_filter_that_may_lag_is_told_from_a_loss() -> None:
    text = " ".join(_printed(_result(lost=1234, undecided=1200)).split())
    assert "1,200 of the 1,234 lost come after the last decision of their partition" in text


def test_nothing_to_audit_is_said() -> None:
    text = _printed(_result(payments=0, end={0: 0}, expected=0, written=0, rejected=0, rejected_expected=0))
    assert text.splitlines() == [
        "Nothing to audit: payments holds no record at offsets 0: 0 to 0.",
        "not audited as asked, for there is nothing; --allow-gap takes that (0.1 s)",
    ]
    assert "records that should not be there" in _printed(_result(payments=0, unexpected=1))


def test_the_result_is_plain_json(tmp_path: Path) -> None:
    file = tmp_path / "audit.json"
    file.write_text(json.dumps(_result(examples={"lost": (Finding(0, 3, "r"),)}).to_dict()), encoding="utf-8")
    read = json.loads(file.read_text(encoding="utf-8"))
    assert read["ok"] is True
    assert read["examples"]["lost"] == [{"partition": 0, "offset": 3, "reason": "r"}]
    assert read["end"] == {"0": 5}
