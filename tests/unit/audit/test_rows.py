"""The rows of a query of the user's: what is due by its `expect`, and what the books find; without a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fraud_filter.audit.books import FAILED, PASS, ROW, Books, bounded_database
from fraud_filter.audit.rows import Record, ask, comparable, read_place
from fraud_filter.oracle import Place
from fraud_filter.records import Source

AT_MS = 1_700_000_000_000
RECORD = Record(b"k", b'{"a": 1}', 2, 7, AT_MS, [("h", None)])
#: What `expect` says of the offsets 10 to 13, and that there is no record at 14.
DUE: dict[int, object] = {10: b'{"a": 1, "b": 2}', 11: "text", 12: None, 13: True}

Written = list[tuple[int, bytes | None, int]]
RIGHT: Written = [(10, b'{"b":2,"a":1}', AT_MS), (11, b"text", AT_MS), (13, None, AT_MS)]


def raises(_: Record) -> object:
    raise ValueError("odd\nin two lines")


@pytest.mark.parametrize(
    ("expect", "told"),
    [
        (lambda _: None, (PASS, None)),
        (lambda _: True, (ROW, None)),
        (lambda record: record.value, (ROW, '{"a": 1}')),
        (lambda record: f"{record.partition} {record.offset} {record.timestamp_ms}", (ROW, f"2 7 {AT_MS}".encode())),
        (lambda record: dict(record.headers)["none"], (FAILED, "expect raises KeyError: 'none'")),
        (raises, (FAILED, "expect raises ValueError: odd")),
        (lambda _: False, (FAILED, "expect returns a bool; it may return None, True, bytes or text")),
        (lambda _: {}, (FAILED, "expect returns a dict; it may return None, True, bytes or text")),
        (lambda _: "\ud800", (FAILED, "expect raises UnicodeEncodeError")),
    ],
)
def test_what_is_due_is_what_expect_says(expect: Callable[[Record], object], told: tuple[str, object]) -> None:
    kind, due = ask(expect, RECORD)
    assert (kind, str(due)[: len(told[1])] if isinstance(told[1], str) else due) == told


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b'{"a": 1, "b": [1, null]}', '{"b":[1,null],"a":1}', True),
        (b'{"a": 12.50}', b'{"a": 1.25E1}', True),
        (b'"\\u00e4"', '"ä"', True),
        (b'{"a": 1}', b'{"a": 1.0}', False),
        (b'{"a": 1}', b'{"a": "1"}', False),
        (b'{"a": 1}', b'{"a": true}', False),
        (b'{"a": null}', b"{}", False),
        (b"[1, 2]", b"[2, 1]", False),
        (b"plain", "plain", True),
        (b"plain", b"plain ", False),
        (b"\xff", b"\xff", True),
        (b"\xff", b"\xfe", False),
        (b"", None, False),
        (b"[" * 100_000, b"[" * 100_000, True),
    ],
)
def test_the_same_json_is_the_same_value_and_all_else_goes_by_its_bytes(one: Any, other: Any, same: bool) -> None:
    assert (comparable(one) == comparable(other)) == same


PLACE = [
    ("source.topic", b"payments"), ("source.partition", b"0"), ("source.offset", b"7"), ("source.timestamp", b"5"),
    ("source.topic_id", b"id"), ("writer", b"3"),
]  # fmt: skip


@pytest.mark.parametrize("own", [[], [("decision", b"mine"), ("reject.reason", b"x"), ("source.offset", b"1")]])
def test_the_place_of_a_row_is_read_among_headers_of_the_users_own(own: list[tuple[str, bytes | None]]) -> None:
    assert read_place([*own, *PLACE]) == Source("payments", 0, 7, 5, "", "id", decision=ROW, writer=3)
    assert read_place([*own, *PLACE[1:]]) is None
    assert read_place(None) is None


@pytest.fixture
def books() -> Iterator[Books]:
    with bounded_database() as database:
        yield Books(database, [], {0: 10}, {0: 20}, 5)


def compare(books: Books, written: Written, due: dict[int, object] | None) -> dict[str, Any]:
    """The figures; `due` None: there is no `expect`."""
    for offset, value, at_ms in written:
        books.see(Source("payments", 0, offset, at_ms, "", decision=ROW), (comparable(value),))
    for offset in DUE:
        if due is None:
            books.expect_row(Place(0, offset, AT_MS), ROW, is_due=False)
        else:
            told = ask(lambda record: due[record.offset], RECORD._replace(offset=offset))
            books.expect_row(Place(0, offset, AT_MS), *told)
    found = books.compare()
    reasons = {kind: [one.reason for one in of_it] for kind, of_it in found["examples"].items()}
    return found | {"faults": (found["lost"], found["duplicated"], found["unexpected"]), "reasons": reasons}


TIME = f"written with source.timestamp 5, but the record's is {AT_MS}"


@pytest.mark.parametrize(
    ("written", "faults", "told"),
    [
        (RIGHT, (0, 0, 0), {}),
        (RIGHT[1:], (1, 0, 0), {"lost": ["should be written"]}),
        ([*RIGHT, RIGHT[1]], (0, 1, 0), {"duplicated": ["written again"]}),
        ([*RIGHT[:2], (13, b"whatever", AT_MS)], (0, 0, 0), {}),
        ([*RIGHT, (12, b"text", AT_MS)], (0, 0, 1), {"unexpected": ["written, but nothing is due"]}),
        ([*RIGHT, (14, b"text", AT_MS)], (0, 0, 1), {"unexpected": ["written, but there is no such record"]}),
        (
            [(10, b'{"a":1}', AT_MS), *RIGHT[1:]],
            (0, 0, 1),
            {"unexpected": ["written with another value than expected"]},
        ),
        ([(10, None, AT_MS), *RIGHT[1:]], (0, 0, 1), {"unexpected": ["written with another value than expected"]}),
        ([(10, RIGHT[0][1], 5), *RIGHT[1:]], (1, 0, 1), {"lost": ["should be written"], "unexpected": [TIME]}),
    ],
)
def test_rows_are_held_against_what_is_expected(
    books: Books, written: Written, faults: tuple[int, int, int], told: dict[str, list[str]]
) -> None:
    found = compare(books, written, DUE)
    assert (found["faults"], found["expected"], found["written"]) == (faults, 3, len(written))
    assert {kind: reasons for kind, reasons in found["reasons"].items() if reasons} == told


@pytest.mark.parametrize(
    ("written", "faults", "told"),
    [
        ([], (0, 0, 0), {}),
        ([(12, b"whatever", AT_MS)], (0, 0, 0), {}),
        ([(12, b"whatever", AT_MS), (12, b"other", AT_MS)], (0, 1, 0), {"duplicated": ["written again"]}),
        ([(14, b"text", AT_MS)], (0, 0, 1), {"unexpected": ["written, but there is no such record"]}),
        ([(12, b"whatever", 5)], (0, 0, 1), {"unexpected": [TIME]}),
    ],
)
def test_places_alone_tell_what_is_there_twice_or_without_a_record(
    books: Books, written: Written, faults: tuple[int, int, int], told: dict[str, list[str]]
) -> None:
    found = compare(books, written, None)
    assert (found["faults"], found["written"]) == (faults, len(written))
    assert {kind: reasons for kind, reasons in found["reasons"].items() if reasons} == told


def test_a_record_that_expect_can_not_judge_is_one_finding_whatever_was_written(books: Books) -> None:
    found = compare(books, [RIGHT[0], (11, b"x", AT_MS), RIGHT[2]], DUE | {11: 5})
    assert (found["faults"], found["expected"], found["unjudged"]) == ((0, 0, 0), 2, 1)
    assert found["reasons"]["unjudged"] == ["expect returns a int; it may return None, True, bytes or text"]
