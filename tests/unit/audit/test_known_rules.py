"""Which rules judge a decision: those of its header, else those that were in force at its offset."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fraud_filter.audit.books import Books, bounded_database
from fraud_filter.audit.gaps import Recorded
from fraud_filter.audit.known_rules import KnownRules
from fraud_filter.checkpoint.notes import VersionStart
from fraud_filter.oracle import Decision, Place
from fraud_filter.records import Source
from fraud_filter.rules.ruleset import Rule, RuleSet
from fraud_filter.rules.version import DecisionRules
from fraud_filter.schema import Field, PaymentSchema

SCHEMA = PaymentSchema((Field("id", "STRING", True), Field("amount", "DOUBLE", True)))


def deciding(above: int, schema: PaymentSchema = SCHEMA) -> DecisionRules:
    return DecisionRules(schema, RuleSet(Path("rules.yml"), (Rule("large", 1, when=f"amount > {above}"),)), 0, 1000)


GIVEN, FIRST, SECOND, THIRD = (deciding(above) for above in (10, 20, 30, 40))


def recorded(*began: tuple[DecisionRules, dict[int, int]], ends: tuple[dict[int, int] | None, ...] = ()) -> Recorded:
    """Rules that began one after the other, and the ends of the partitions then."""
    all_ends = ends or (None,) * len(began)
    versions = [
        VersionStart(one.version, "t", begin, 0.0, end) for (one, begin), end in zip(began, all_ends, strict=True)
    ]
    return Recorded([], {}, {}, versions, {one.version: one for one, _ in began})


def source(offset: int, version: str = "", partition: int = 0) -> Source:
    return Source("payments", partition, offset, 0, "", "t", version)


def at(known_rules: KnownRules, *offsets: int, partition: int = 0) -> list[DecisionRules]:
    return [known_rules.all[known_rules.of(Place(partition, offset, 0))[0]] for offset in offsets]


def test_undecided_payments_are_due_by_what_began_last_before_them() -> None:
    known_rules = KnownRules(GIVEN, recorded((FIRST, {0: 10}), (SECOND, {0: 20, 1: 5}), (FIRST, {0: 25, 1: 5})))
    assert at(known_rules, 9, 10, 19, 20, 24, 25, 99) == [GIVEN, FIRST, FIRST, SECOND, SECOND, FIRST, FIRST]
    # A partition that was not there when the first began; the second committed nothing of it.
    assert at(known_rules, 0, 4, 5, partition=1) == [FIRST, FIRST, FIRST]
    # One that committed nothing has decided nothing for good.
    known_rules = KnownRules(GIVEN, recorded((FIRST, {0: 0}), (SECOND, {0: 20}), (THIRD, {0: 15})))
    assert at(known_rules, 14, 15, 20) == [FIRST, THIRD, THIRD]


def test_a_decision_is_judged_by_its_header_where_that_version_read_the_payment() -> None:
    known_rules = KnownRules(GIVEN, recorded((FIRST, {0: 10}), (SECOND, {0: 20})))

    def judges(offset: int, version: str) -> DecisionRules:
        number = known_rules.see(source(offset, version))
        assert number is not None
        return known_rules.all[number]

    assert judges(25, SECOND.version) is SECOND
    assert judges(25, FIRST.version) is FIRST  # decided and not committed, before the second began
    assert judges(15, FIRST.version) is FIRST
    assert judges(15, SECOND.version) is FIRST  # it never read that one
    assert judges(25, "") is SECOND  # as written before there was such a header
    assert judges(5, "") is GIVEN
    assert judges(25, "0123456789ab") is SECOND
    assert known_rules.unknown == 1
    assert known_rules.counted[FIRST.version] == 2
    due, also = known_rules.of(Place(0, 25, 0))
    assert (known_rules.all[due], known_rules.all[also]) == (SECOND, FIRST)


def test_without_a_checkpoint_the_given_rules_judge_all() -> None:
    known_rules = KnownRules(GIVEN)
    for version in ("", GIVEN.version, FIRST.version):
        assert known_rules.see(source(5, version)) == 0
    assert (at(known_rules, 0, 99), known_rules.unknown) == ([GIVEN, GIVEN], 1)


def test_rules_that_differ_in_their_predicates_alone_share_a_reader() -> None:
    other = deciding(20, PaymentSchema((*SCHEMA.fields, Field("note", "STRING", False))))
    known_rules = KnownRules(GIVEN, recorded((FIRST, {0: 0}), (other, {0: 9})))
    assert known_rules.oracle(0) is known_rules.oracle(1)
    assert known_rules.oracle(2) is not known_rules.oracle(0)


def test_a_payment_is_decided_by_the_rules_that_had_to_and_by_those_that_did() -> None:
    small = replace(deciding(50), max_record_bytes=10)
    known_rules = KnownRules(GIVEN, recorded((FIRST, {0: 0}), (small, {0: 20})))
    known_rules.see(source(25, FIRST.version))
    payment = json.dumps({"id": "p", "amount": 25}).encode()
    flagged, too_large = Decision(None, ("large",), ("p", 25.0)), Decision("too-large", (), ())
    for offset, decisions in ((5, [flagged]), (20, [too_large]), (25, [too_large, flagged])):
        assert list(known_rules.decide(Place(0, offset, 1000), None, payment).values()) == decisions


@pytest.mark.parametrize(
    ("by_old", "by_new", "written_by_new", "faults"),
    [
        (["large"], [], False, (0, 0, 0)),
        (["large"], ["huge"], True, (0, 1, 0)),
        (["large"], ["huge"], False, (0, 0, 0)),
        ([], ["large"], False, (1, 0, 1)),
    ],
)
def test_what_two_versions_decided_is_right_by_both_and_lost_by_neither(
    by_old: list[str], by_new: list[str], written_by_new: bool, faults: tuple[int, int, int]
) -> None:
    with bounded_database() as database:
        books = Books(database, [SCHEMA, SCHEMA], {0: 0}, {0: 2}, 9)
        books.see(source(0), (b"k", "p", 5.0), ("large",), 0)
        if written_by_new:
            books.see(source(0), (b"k", "p", 5.0), tuple(by_new), 1)
        books.expect(Place(0, 0, 0), b"k", b"{}", Decision(None, tuple(by_new), ("p", 5.0)), 1)
        books.expect(Place(0, 0, 0), b"k", b"{}", Decision(None, tuple(by_old), ("p", 5.0)), 0, is_due=False)
        found = books.compare()
    assert (found["lost"], found["duplicated"], found["unexpected"]) == faults


def test_what_one_version_flagged_is_not_due_as_an_approval_of_the_next() -> None:
    approval = source(0)._replace(decision="approve")
    for twice in (False, True):
        with bounded_database() as database:
            books = Books(database, [SCHEMA, SCHEMA], {0: 0}, {0: 2}, 9)
            books.see(source(0), (b"k", "p", 5.0), ("large",), 0)
            if twice:
                books.see(approval, (b"k", "p", 5.0), (), 1)
            books.expect(Place(0, 0, 0), b"k", b"{}", Decision(None, (), ("p", 5.0)), 1, approves=True)
            books.expect(Place(0, 0, 0), b"k", b"{}", Decision(None, ("large",), ("p", 5.0)), 0, is_due=False)
            found = books.compare()
        assert (found["lost"], found["duplicated"], found["unexpected"]) == (0, int(twice), 0)


def test_a_version_that_was_replaced_decides_nothing_that_came_later() -> None:
    known_rules = KnownRules(GIVEN, recorded((FIRST, {0: 0}), (SECOND, {0: 20}), ends=({0: 5}, {0: 30})))
    is_over = [known_rules.see(source(offset, FIRST.version)) is None for offset in (19, 20, 29, 30, 7000)]
    assert is_over == [False, False, False, True, True]
    assert known_rules.see(source(0, FIRST.version, partition=1)) is None  # the partition was added later
    assert known_rules.see(source(7000, SECOND.version)) is not None
    assert len(known_rules.of(Place(0, 7000, 0))) == 1  # it is not taken for a right one either


def test_a_version_that_came_back_decides_again() -> None:
    began = (FIRST, {0: 0}), (SECOND, {0: 20}), (FIRST, {0: 50})
    known_rules = KnownRules(GIVEN, recorded(*began, ends=({0: 5}, {0: 30}, {0: 60})))
    asked = (40, FIRST), (50, FIRST), (59, SECOND), (60, SECOND)
    is_over = [known_rules.see(source(offset, one.version)) is None for offset, one in asked]
    assert is_over == [True, False, False, True]
    without_ends = KnownRules(GIVEN, recorded(*began))  # as a former filter noted them
    assert without_ends.see(source(40, FIRST.version)) is not None
