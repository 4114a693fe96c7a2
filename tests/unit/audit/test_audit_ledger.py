"""The audit's books, without a broker."""

from __future__ import annotations

import tempfile
import tracemalloc
from pathlib import Path

import pytest

from fraud_filter.audit.ledger import FLAGGED, PASSED, REJECTED, Finding, Ledger
from fraud_filter.audit.spill import Spill
from fraud_filter.errors import FraudFilterError
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


def test_what_could_not_be_decided_is_neither_lost_nor_unexpected(ledger: Books) -> None:
    ledger.see_flagged(source(10), b"k", FIELDS, ("large",))
    for offset in (11, 12, 13, 14, 15):
        ledger.see_rejected(source(offset, "undecidable", timestamp_ms=-1), None, None)
    assert ledger.close() == 0
    assert _reasons(ledger, "unexpected") == ["rejected (undecidable), but no record has this offset"]
    assert (ledger.rejected, ledger.reject_reasons) == (5, {"undecidable": 4})


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
