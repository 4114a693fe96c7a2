"""The audit's books, without a broker."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fraud_filter.audit.books import Books, bounded_database
from fraud_filter.audit.result import FeatureCounts, Finding
from fraud_filter.errors import FraudFilterError
from fraud_filter.oracle import Decision, Place
from fraud_filter.query.source_headers import Source
from fraud_filter.schema import Field, PaymentSchema

SCHEMA = PaymentSchema((Field("id", "STRING", True), Field("amount", "DOUBLE", True), Field("at", "TIMESTAMP", False)))
FIELDS = ("p", 5.0, 1_000_500)
AT_MS = 1_700_000_000_000
#: Offsets 10 to 15: two to be flagged, one not, one to be rejected, a gap at 14, and one to be flagged by two rules.
DUE: dict[int, tuple[bytes | None, bytes, Decision]] = {
    10: (b"k", b"{}", Decision(None, ("large",), FIELDS)),
    11: (b"k", b"{}", Decision(None, ("large",), FIELDS)),
    12: (b"k", b"{}", Decision(None, (), FIELDS)),
    13: (b"k", b"bad", Decision("malformed-json", (), ())),
    15: (None, b"{}", Decision(None, ("large", "night"), ("q", 7.0, None))),
}


def source(offset: int, reason: str = "", timestamp_ms: int = AT_MS, partition: int = 0) -> Source:
    return Source("payments", partition, offset, timestamp_ms, reason)


class Scene:
    """Books, in which a test notes what was written."""

    def __init__(self, books: Books) -> None:
        self.books = books

    def flag(
        self, *offsets: int, fields: Any = FIELDS, rules: tuple[str, ...] = ("large",), timestamp_ms: int = AT_MS
    ) -> None:
        for offset in offsets:
            self.books.see_flagged(source(offset, "", timestamp_ms), b"k", fields, rules)

    def reject(self, *offsets: int, reason: str = "malformed-json", timestamp_ms: int = AT_MS) -> None:
        for offset in offsets:
            self.books.see_rejected(source(offset, reason, timestamp_ms), b"k", b"bad")

    def settle(self) -> None:
        """Everything as it should be."""
        self.flag(10, 11)
        self.reject(13)
        self.books.see_flagged(source(15), None, ("q", 7.0, None), ("large", "night"))

    def compare(self, *offsets: int) -> Any:
        """The figures, with `faults`: lost, duplicated, unexpected; and `reasons` of the unexpected."""
        for offset in offsets or DUE:
            self.books.expect(Place(0, offset, AT_MS), *DUE[offset])
        figures = self.books.compare()
        reasons = {kind: [finding.reason for finding in found] for kind, found in figures["examples"].items()}
        faults = figures["lost"], figures["duplicated"], figures["unexpected"]
        return SimpleNamespace(**figures, faults=faults, reasons=reasons)


@pytest.fixture
def scene() -> Iterator[Scene]:
    with bounded_database() as database:
        yield Scene(Books(database, [SCHEMA], {0: 10}, {0: 16}, 3))


def test_all_is_well(scene: Scene) -> None:
    scene.settle()
    found = scene.compare()
    assert found.faults == (0, 0, 0)
    assert (found.expected, found.rejected_expected) == (3, 1)
    assert (found.written, found.rejected, found.reject_reasons) == (3, 1, {"malformed-json": 1})
    assert found.features is None


def test_what_is_missing_is_lost_flagged_and_rejected_alike(scene: Scene) -> None:
    scene.flag(10)
    found = scene.compare()
    assert found.faults == (3, 0, 0)
    assert found.examples["lost"] == (
        Finding(0, 11, "should be flagged by large"),
        Finding(0, 13, "should be rejected as malformed-json"),
        Finding(0, 15, "should be flagged by large, night"),
    )


@pytest.mark.parametrize(
    ("flagged", "rejected", "lost", "undecided"),
    [((), (), 4, 4), ((10,), (), 3, 3), ((11,), (), 3, 2), ((10,), (13,), 2, 1)],
)
def test_what_is_missing_before_the_last_decision_is_no_longer_to_be_decided(
    scene: Scene, flagged: tuple[int, ...], rejected: tuple[int, ...], lost: int, undecided: int
) -> None:
    scene.flag(*flagged)
    scene.reject(*rejected)
    found = scene.compare()
    assert (found.lost, found.undecided) == (lost, undecided)


@pytest.mark.parametrize("reason", ["undecidable", "late"])
def test_what_could_not_be_decided_is_neither_lost_nor_unexpected(scene: Scene, reason: str) -> None:
    scene.flag(10)
    scene.reject(11, 11, 12, 13, 14, 15, reason=reason, timestamp_ms=-1)
    found = scene.compare()
    assert found.faults == (0, 0, 1)
    assert found.reasons["unexpected"] == [f"rejected ({reason}), but no record has this offset"]
    assert (found.rejected, found.reject_reasons) == (5, {reason: 4})


def test_features_are_compared_and_told_apart_from_other_fields() -> None:
    schema = PaymentSchema((*SCHEMA.fields, Field("spent", "DOUBLE", False)))
    with bounded_database() as database:
        scene = Scene(Books(database, [schema], {0: 10}, {0: 14}, 3, results=["spent"]))
        for offset, spent in ((10, 5.0), (11, 6.0), (12, 5.0)):
            scene.flag(offset, fields=(*FIELDS, spent))
        scene.flag(12, fields=("q", *FIELDS[1:], 5.0))
        scene.flag(13, fields=None)
        for offset in range(10, 14):
            due = Decision(None, ("large",), (*FIELDS, 5.0), ("spent",) if offset == 10 else ())
            scene.books.expect(Place(0, offset, AT_MS), b"k", b"{}", due)
        found = scene.books.compare()
    assert (found["lost"], found["unexpected"]) == (0, 3)
    assert found["features"] == FeatureCounts(decisions=4, differing=1, untold=0, truncated=1)
    assert [finding.reason for finding in found["examples"]["unexpected"]] == [
        "written with another spent than the record's",
        "written with another id than the record's",
        "flagged with a value that is not a record with rules",
    ]


def test_payments_whose_features_no_one_can_tell_are_neither_lost_nor_unexpected() -> None:
    with bounded_database() as database:
        scene = Scene(Books(database, [SCHEMA], {0: 10}, {0: 14}, 3, results=["amount"]))
        scene.flag(10)
        scene.reject(12)
        for offset in (10, 11, 12):
            due = Decision(None, ("large",), FIELDS)
            scene.books.expect(Place(0, offset, AT_MS), b"k", b"{}", due, can_tell=False)
        found = scene.books.compare()
    assert (found["lost"], found["written"]) == (0, 1)
    assert found["features"] == FeatureCounts(decisions=0, differing=0, untold=3, truncated=0)
    assert found["examples"]["unexpected"] == (Finding(0, 12, "rejected (malformed-json), but it is valid"),)


def test_a_payment_that_cannot_be_judged_is_one_finding_whatever_was_written(scene: Scene) -> None:
    scene.settle()
    scene.flag(16)
    scene.reject(17)
    for offset in (16, 17, 18):
        failed = Decision(None, (), (), (), "OverflowError: too large")
        scene.books.expect(Place(0, offset, AT_MS), b"k", b"{}", failed)
    found = scene.compare()
    assert (found.faults, found.unjudged) == ((0, 0, 0), 3)
    assert found.examples["unjudged"][0] == Finding(0, 16, "OverflowError: too large")


def test_copies_are_duplicates_and_no_fault(scene: Scene) -> None:
    scene.settle()
    scene.flag(10, 10)
    scene.reject(13)
    found = scene.compare()
    assert found.faults == (0, 3, 0)
    assert found.reasons["duplicated"] == ["flagged again", "flagged again", "rejected again"]
    assert (found.written, found.rejected) == (5, 1)


@pytest.mark.parametrize(
    ("offset", "verb", "wrong"),
    [
        (12, "flag", "flagged by large, but it matches no rule"),
        (13, "flag", "flagged by large, but it is not valid"),
        (14, "flag", "flagged by large, but no record has this offset"),
        (10, "reject", "rejected (malformed-json), but it is valid"),
        (12, "reject", "rejected (malformed-json), but it is valid"),
        (14, "reject", "rejected (malformed-json), but no record has this offset"),
    ],
)
def test_flagged_or_rejected_without_cause(scene: Scene, offset: int, verb: str, wrong: str) -> None:
    scene.settle()
    getattr(scene, verb)(offset)
    found = scene.compare()
    assert found.faults == (0, 0, 1)
    assert (found.reasons["unexpected"], found.rejected) == ([wrong], 1 + (verb == "reject"))


def test_another_reason_for_a_rejection_is_no_fault(scene: Scene) -> None:
    scene.settle()
    scene.reject(13, reason="wrong-type: amount")
    found = scene.compare()
    assert (found.faults, found.reject_reasons) == ((0, 1, 0), {"malformed-json": 1, "wrong-type": 1})


def test_examples_are_limited(scene: Scene) -> None:
    for offset in range(5):
        scene.books.find("unexpected", 1, offset, "strange")
    found = scene.books.compare()
    assert found["unexpected"] == 5
    assert found["examples"]["unexpected"] == tuple(Finding(1, offset, "strange") for offset in range(3))


def test_values_that_look_alike_differ(scene: Scene) -> None:
    """Python hashes -1 and -2 alike."""
    scene.books.expect(Place(0, 10, AT_MS), b"k", b"", Decision(None, ("a", "b"), ("None", -1.0, None)))
    scene.flag(10, fields=("None", -2.0, None), rules=("a", "b"))
    scene.flag(10, fields=(None, -1.0, None), rules=("a", "b"))
    scene.flag(10, fields=("None", -1.0, None), rules=("a, b",))
    assert sorted(finding.reason for finding in scene.books.compare()["examples"]["unexpected"]) == [
        "flagged by a, b instead of a, b",
        "written with another amount than the record's",
        "written with another id than the record's",
    ]


@pytest.mark.parametrize("timestamp_ms", [AT_MS - 1, AT_MS + 1, 0, -(2**70), 2**70])
def test_a_decision_with_another_time_is_about_another_payment(scene: Scene, timestamp_ms: int) -> None:
    scene.settle()
    scene.flag(10, timestamp_ms=timestamp_ms)
    scene.reject(13, timestamp_ms=timestamp_ms)
    found = scene.compare()
    assert found.faults == (0, 0, 2)
    assert all(f"but the record's is {AT_MS}" in reason for reason in found.reasons["unexpected"])


def test_a_payment_with_decisions_of_another_time_alone_is_lost(scene: Scene) -> None:
    scene.flag(10, 10, timestamp_ms=AT_MS - 5)
    found = scene.compare()
    assert found.faults == (4, 0, 2)
    assert found.examples["lost"][0] == Finding(0, 10, "should be flagged by large")


def test_decisions_on_what_was_removed_while_the_outputs_were_read_are_left_out(scene: Scene) -> None:
    scene.settle()
    scene.books.begin_at({0: 12})
    found = scene.compare(13, 15)
    assert (found.faults, found.written) == ((0, 0, 0), 1)


def test_the_range_ends_outside_and_at_unknown_partitions(scene: Scene) -> None:
    assert [scene.books.covers(source(offset)) for offset in (9, 10, 15, 16)] == [False, True, True, False]
    assert not any(scene.books.covers(source(10, partition=partition)) for partition in (1, -1))


def test_partitions_and_their_parts_are_compared_each() -> None:
    """At the edges of what is compared at a time."""
    offsets = (5, 2**17 + 4, 2**17 + 5, 3 * 2**17)
    with bounded_database() as database:
        books = Books(database, [SCHEMA], dict.fromkeys(range(10), 5), dict.fromkeys(range(10), 3 * 2**17 + 1), 3)
        for partition in (0, 7, 8, 9):
            for offset in offsets:
                if (partition, offset) != (8, offsets[-1]):
                    books.see_flagged(source(offset, partition=partition), b"k", FIELDS, ("large",))
                books.expect(Place(partition, offset, AT_MS), *DUE[10])
        found = books.compare()
    assert (found["expected"], found["written"], found["unexpected"]) == (16, 15, 0)
    assert found["examples"]["lost"] == (Finding(8, offsets[-1], "should be flagged by large"),)


def test_more_than_memory_holds_is_compared() -> None:
    """Some 60 MB, with 32 MB of memory."""
    count = 300_000
    with bounded_database("32MB") as database:
        scene = Scene(Books(database, [SCHEMA], {0: 0}, {0: count}, 3))
        scene.flag(*range(count))
        found = scene.compare(*DUE)
    assert (found.lost, found.written, found.unexpected) == (1, count, count - 2)


def test_a_disk_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(FraudFilterError, match="TMPDIR names another place"), bounded_database():
        pass
