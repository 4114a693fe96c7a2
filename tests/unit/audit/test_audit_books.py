"""The audit's books, without a broker."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fraud_filter.audit.books import Books, bounded_database
from fraud_filter.audit.result import FeatureCounts, Finding
from fraud_filter.errors import FraudFilterError
from fraud_filter.oracle import Decision, Place
from fraud_filter.records import Source
from fraud_filter.schema import Field, PaymentSchema

SCHEMA = PaymentSchema((Field("id", "STRING", True), Field("amount", "DOUBLE", True), Field("spent", "DOUBLE", False)))
FIELDS = ("p", 5.0, 1.5)
AT_MS = 1_700_000_000_000
FLAGGED, PASSED = Decision(None, ("large",), FIELDS), Decision(None, (), FIELDS)
REJECTED = Decision("malformed-json", (), ())
#: The payments of offsets 10 to 15; there is no record at 14.
DUE = {10: FLAGGED, 11: FLAGGED, 12: PASSED, 13: REJECTED, 15: FLAGGED}

Written = list[tuple[Source, Any, Any]]


def source(offset: int, reason: str = "", timestamp_ms: int = AT_MS, partition: int = 0) -> Source:
    return Source("payments", partition, offset, timestamp_ms, reason)


def flag(*offsets: int, fields: Any = FIELDS, rules: tuple[str, ...] = ("large",), at_ms: int = AT_MS) -> Written:
    return [(source(offset, "", at_ms), fields, rules) for offset in offsets]


def approve(*offsets: int, fields: Any = FIELDS, rules: tuple[str, ...] = ()) -> Written:
    return [(source(offset)._replace(decision="approve"), fields, rules) for offset in offsets]


def reject(*offsets: int, reason: str = "malformed-json", value: bytes = b"{}", at_ms: int = AT_MS) -> Written:
    return [(source(offset, reason, at_ms)._replace(decision="reject"), value, None) for offset in offsets]


def see(books: Books, written: Written) -> None:
    for at, what, rules in written:
        content = (b"k", what) if rules is None else what and (b"k", *what)
        books.see(at, content, rules or ())


def compare(books: Books, written: Written, due: dict[int, Decision] = DUE, **how: bool) -> Any:
    """The figures, and as `reasons` those of the findings by their kinds."""
    see(books, written)
    for offset, decision in due.items():
        books.expect(Place(0, offset, AT_MS), b"k", b"{}", decision, **how)
    figures = books.compare()
    reasons = {kind: [finding.reason for finding in found] for kind, found in figures["examples"].items()}
    return figures | {"reasons": reasons, "faults": (figures["lost"], figures["duplicated"], figures["unexpected"])}


@pytest.fixture
def books() -> Iterator[Books]:
    with bounded_database() as database:
        yield Books(database, [SCHEMA], {0: 10}, {0: 20}, 3, ["spent"])


WELL = [*flag(10, 11, 15), *reject(13)]
OTHER_TIME = "written with source.timestamp {}, but the record's is " + str(AT_MS)
#: Beside what is right: what else is written, how many copies that makes, and what is wrong with it.
CASES: tuple[tuple[Written, int, list[str]], ...] = (
    ([], 0, []),
    ([*flag(10, 10), *reject(13)], 3, []),
    (reject(13, reason="wrong-type: amount"), 1, []),
    (flag(12), 0, ["flagged by large, but nothing is due"]),
    (flag(13), 0, ["flagged by large instead of rejected as malformed-json"]),
    (flag(14), 0, ["flagged by large, but there is no such record"]),
    (approve(12), 0, ["approved, but nothing is due"]),
    (reject(10), 0, ["rejected as malformed-json instead of flagged by large"]),
    (reject(12), 0, ["rejected as malformed-json, but nothing is due"]),
    (reject(14), 0, ["rejected as malformed-json, but there is no such record"]),
    (reject(13, value=b"{ }"), 1, ["written with another value than expected"]),
    (flag(10, fields=None, rules=()), 1, ["flagged with a value that is not a record with rules"]),
    (flag(10, rules=("large", "night")), 1, ["flagged by large, night instead of flagged by large"]),
    (flag(10, rules=()), 1, ["flagged instead of flagged by large"]),
    (flag(10, fields=("q", 5, 1.5)), 1, ["written with another id, amount than expected"]),
    *(
        (write(offset, at_ms=at_ms), 0, [OTHER_TIME.format(at_ms)])
        for at_ms in (AT_MS - 1, AT_MS + 1, 0, -(2**63), 2**63 - 1)
        for write, offset in ((flag, 10), (reject, 13))
    ),
)


@pytest.mark.parametrize(("written", "copies", "unexpected"), CASES)
def test_what_is_right_is_not_missed_and_what_is_not_is_told(
    books: Books, written: Written, copies: int, unexpected: list[str]
) -> None:
    found = compare(books, [*WELL, *written])
    assert (found["faults"], found["reasons"]["unexpected"]) == ((0, copies, len(unexpected)), unexpected)
    assert (found["expected"], found["rejected_expected"]) == (3, 1)
    assert found["written"] + found["approved"] == 3 + sum(rules is not None for _, _, rules in written)
    is_called_for = all(at.offset == 13 or at.timestamp_ms != AT_MS for at, _, rules in written if rules is None)
    assert found["rejected"] == (1 if is_called_for else 2)


#: The same where all decisions are written.
CASES_OF_ALL: tuple[tuple[Written, tuple[int, int, int], list[str]], ...] = (
    (approve(12), (0, 0, 0), []),
    (approve(12, 12), (0, 1, 0), []),
    ([], (1, 0, 0), []),
    (flag(12), (1, 0, 1), ["flagged by large instead of approved"]),
    ([*approve(10), *approve(12)], (0, 0, 1), ["approved instead of flagged by large"]),
    ([*approve(12), *approve(13)], (0, 0, 1), ["approved instead of rejected as malformed-json"]),
    (approve(12, rules=("large",)), (0, 0, 1), ["approved by large instead of approved"]),
    (approve(12, fields=("p", 5.0, 6.0)), (0, 0, 1), ["written with another spent than expected"]),
    (reject(12, reason="late"), (0, 0, 0), []),
)


@pytest.mark.parametrize(("written", "faults", "unexpected"), CASES_OF_ALL)
def test_approvals_are_held_against_the_payments_where_all_decisions_are_written(
    books: Books, written: Written, faults: tuple[int, int, int], unexpected: list[str]
) -> None:
    found = compare(books, [*WELL, *written], approves=True)
    assert (found["faults"], found["reasons"]["unexpected"]) == (faults, unexpected)
    assert found["reasons"]["lost"] == ["should be approved"] * faults[0]
    assert (found["expected"], found["approved_expected"]) == (3, 1)
    assert found["approved"] == sum(at.decision == "approve" for at, _, _ in written)


@pytest.mark.parametrize(
    ("written", "lost", "undecided"),
    [([], 4, 4), (flag(10), 3, 3), (flag(11), 3, 2), ([*flag(10), *reject(13)], 2, 1), (flag(10, 10, at_ms=0), 4, 3)],
)
def test_what_is_missing_is_lost_unless_it_may_still_come(
    books: Books, written: Written, lost: int, undecided: int
) -> None:
    found = compare(books, written)
    assert (found["lost"], found["undecided"]) == (lost, undecided)
    place_and_reason = {Finding(0, offset, "should be flagged by large") for offset in (10, 11, 15)}
    assert set(found["examples"]["lost"]) <= {*place_and_reason, Finding(0, 13, "should be rejected as malformed-json")}


@pytest.mark.parametrize("reason", ["undecidable", "late"])
def test_what_could_not_be_decided_is_neither_lost_nor_unexpected(books: Books, reason: str) -> None:
    found = compare(books, [*flag(10), *reject(11, 11, 12, 13, 14, 15, reason=reason, at_ms=-1)])
    assert found["faults"] == (0, 0, 1)
    assert found["reasons"]["unexpected"] == [f"rejected as {reason}, but there is no such record"]
    assert (found["rejected"], found["reject_reasons"]) == (5, {reason: 4})


def test_features_are_compared_and_told_apart_from_other_fields(books: Books) -> None:
    written = [*flag(10), *flag(11, fields=("p", 5.0, 6.0)), *flag(15, fields=("q", 5.0, 1.5)), *flag(15, fields=None)]
    found = compare(books, written, DUE | {10: FLAGGED._replace(truncated=("spent",))})
    assert found["features"] == FeatureCounts(decisions=3, differing=1, untold=0, truncated=1)
    assert found["reasons"]["unexpected"][0] == "written with another spent than expected"


def test_payments_whose_features_no_one_can_tell_are_neither_lost_nor_unexpected(books: Books) -> None:
    found = compare(books, [*flag(10), *reject(12, 13)], can_tell=False)
    assert (found["faults"], found["written"]) == ((0, 0, 1), 1)
    assert found["features"] == FeatureCounts(decisions=0, differing=0, untold=4, truncated=0)
    assert found["examples"]["unexpected"] == (Finding(0, 12, "rejected as malformed-json, but the record is valid"),)


def test_a_payment_that_cannot_be_judged_is_one_finding_whatever_was_written(books: Books) -> None:
    failed = Decision(None, (), (), (), "OverflowError: too large")
    found = compare(books, [*WELL, *flag(16), *reject(17)], DUE | dict.fromkeys((16, 17, 18), failed))
    assert (found["faults"], found["unjudged"]) == ((0, 0, 0), 3)
    assert found["examples"]["unjudged"][0] == Finding(0, 16, "OverflowError: too large")


def test_values_that_look_alike_differ(books: Books) -> None:
    """Python hashes -1 and -2 alike."""
    due = {10: Decision(None, ("a", "b"), ("None", -1.0, None))}
    written = [
        *flag(10, fields=("None", -2.0, None), rules=("a", "b")),
        *flag(10, fields=(None, -1.0, None), rules=("a", "b")),
        *flag(10, fields=("None", -1.0, None), rules=("a, b",)),
    ]
    assert sorted(compare(books, written, due)["reasons"]["unexpected"]) == [
        "flagged by a, b instead of flagged by a, b",
        "written with another amount than expected",
        "written with another id than expected",
    ]


def test_decisions_on_what_was_removed_while_the_outputs_were_read_are_left_out(books: Books) -> None:
    see(books, WELL)
    books.begin_at({0: 12})
    found = compare(books, [], {offset: DUE[offset] for offset in (12, 13, 15)})
    assert (found["faults"], found["written"]) == ((0, 0, 0), 1)


def test_the_range_ends_outside_and_at_unknown_partitions(books: Books) -> None:
    assert [books.covers(source(offset)) for offset in (9, 10, 19, 20)] == [False, True, True, False]
    assert not any(books.covers(source(10, partition=partition)) for partition in (1, -1))


def test_partitions_and_their_parts_are_compared_each() -> None:
    """At the edges of what is compared at a time."""
    offsets = (5, 2**16 + 4, 2**16 + 5, 3 * 2**16)
    with bounded_database() as database:
        books = Books(database, [SCHEMA], dict.fromkeys(range(10), 5), dict.fromkeys(range(10), 3 * 2**16 + 1), 3)
        for partition in (0, 7, 8, 9):
            for offset in offsets:
                if (partition, offset) != (8, offsets[-1]):
                    books.see(source(offset, partition=partition), (b"k", *FIELDS), ("large",))
                books.expect(Place(partition, offset, AT_MS), b"k", b"{}", FLAGGED)
        found = books.compare()
    assert (found["expected"], found["written"], found["unexpected"]) == (16, 15, 0)
    assert found["examples"]["lost"] == (Finding(8, offsets[-1], "should be flagged by large"),)


def test_more_than_memory_holds_is_compared_and_few_examples_are_kept() -> None:
    """Some 40 MB, with 32 MB of memory."""
    count = 200_000
    with bounded_database("32MB") as database:
        found = compare(Books(database, [SCHEMA], {0: 0}, {0: count}, 3), flag(*range(count)))
    assert (found["lost"], found["written"], found["unexpected"]) == (1, count, count - 3)
    assert len(found["examples"]["unexpected"]) == 3


def test_a_disk_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(FraudFilterError, match="TMPDIR names another place"), bounded_database():
        pass
