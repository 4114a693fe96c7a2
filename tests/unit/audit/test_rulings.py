"""Which rules judge a decision: those of its header, else those that were in force at its offset."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fraud_filter.audit.books import Books, bounded_database
from fraud_filter.audit.gaps import Recorded
from fraud_filter.audit.rulings import _READY, Rulings
from fraud_filter.checkpoint.versions import Began
from fraud_filter.oracle import Decision, Place
from fraud_filter.query.source_headers import Source
from fraud_filter.rules.ruleset import Rule, RuleSet
from fraud_filter.rules.version import Ruling
from fraud_filter.schema import Field, PaymentSchema

SCHEMA = PaymentSchema((Field("id", "STRING", True), Field("amount", "DOUBLE", True)))


def ruling(above: int, schema: PaymentSchema = SCHEMA) -> Ruling:
    return Ruling(schema, RuleSet(Path("rules.yml"), (Rule("large", 1, when=f"amount > {above}"),)), 0, 1000)


GIVEN, FIRST, SECOND, THIRD = (ruling(above) for above in (10, 20, 30, 40))


def recorded(*began: tuple[Ruling, dict[int, int]]) -> Recorded:
    versions = [Began(one.version, "t", begin, 0.0) for one, begin in began]
    return Recorded([], {}, {}, versions, {one.version: one for one, _ in began})


def source(offset: int, version: str = "", partition: int = 0) -> Source:
    return Source("payments", partition, offset, 0, "", "t", version)


def at(rulings: Rulings, *offsets: int, partition: int = 0) -> list[Ruling]:
    return [rulings.all[due] for due, *_ in rulings.of([Place(partition, offset, 0) for offset in offsets])]


def test_undecided_payments_are_due_by_what_began_last_before_them() -> None:
    began = [(FIRST, {0: 10}), (SECOND, {0: 20, 1: 5}), (FIRST, {0: 25, 1: 5})]
    rulings = Rulings(GIVEN, recorded(*began))
    assert at(rulings, 9, 10, 19, 20, 24, 25, 99) == [GIVEN, FIRST, FIRST, SECOND, SECOND, FIRST, FIRST]
    # A partition that was not there when the first began; the second committed nothing of it.
    assert at(rulings, 0, 4, 5, partition=1) == [FIRST, FIRST, FIRST]


def test_one_that_committed_nothing_has_decided_nothing_for_good() -> None:
    rulings = Rulings(GIVEN, recorded((FIRST, {0: 0}), (SECOND, {0: 20}), (THIRD, {0: 15})))
    assert at(rulings, 14, 15, 20) == [FIRST, THIRD, THIRD]


def test_a_decision_is_judged_by_its_header_where_that_version_read_the_payment() -> None:
    rulings = Rulings(GIVEN, recorded((FIRST, {0: 10}), (SECOND, {0: 20})))

    def judges(offset: int, version: str) -> Ruling:
        number = rulings.see(source(offset, version))
        assert number is not None
        return rulings.all[number]

    assert judges(25, SECOND.version) is SECOND
    assert judges(25, FIRST.version) is FIRST  # decided and not committed, before the second began
    assert judges(15, FIRST.version) is FIRST
    assert judges(15, SECOND.version) is FIRST  # it never read that one
    assert judges(25, "") is SECOND  # as written before there was such a header
    assert judges(5, "") is GIVEN
    assert judges(25, "0123456789ab") is SECOND
    assert rulings.unknown == 1
    assert rulings.counted[FIRST.version] == 2
    assert [[rulings.all[number] for number in numbers] for numbers in rulings.of([Place(0, 25, 0)])] == [
        [SECOND, FIRST]
    ]


def test_without_a_checkpoint_the_given_rules_judge_all() -> None:
    rulings = Rulings(GIVEN)
    for version in ("", GIVEN.version, FIRST.version):
        assert rulings.see(source(5, version)) == 0
    assert (at(rulings, 0, 99), rulings.unknown) == ([GIVEN, GIVEN], 1)


def test_rules_that_differ_in_their_predicates_alone_share_a_reader() -> None:
    other = ruling(20, PaymentSchema((*SCHEMA.fields, Field("note", "STRING", False))))
    rulings = Rulings(GIVEN, recorded((FIRST, {0: 0}), (other, {0: 9})))
    assert rulings.oracle(0) is rulings.oracle(1)
    assert rulings.oracle(2) is not rulings.oracle(0)
    assert len(rulings.readers([0, 1])) == 1


def test_as_many_rules_as_there_were_are_judged_by_with_few_at_a_time() -> None:
    many = [(ruling(above), {0: above}) for above in range(3 * _READY)]
    rulings = Rulings(GIVEN, recorded(*many))
    payment = json.dumps({"id": "p", "amount": 5.5}).encode()
    for number, one in enumerate(rulings.all[1:], start=1):
        (decision,) = rulings.judge(number).judge(rulings.oracle(number).read([payment]))
        assert bool(decision.rules) == ("amount > 5" in str(one.rules.rules[0].when) or number <= 6)
    assert len(rulings._judges) == _READY


@pytest.mark.parametrize("is_flagged_by_new", [True, False])
def test_what_two_versions_decided_is_right_by_both_and_lost_by_neither(is_flagged_by_new: bool) -> None:
    with bounded_database() as database:
        books = Books(database, [SCHEMA, SCHEMA], {0: 0}, {0: 2}, 9)
        fields = ("p", 5.0)
        old, new = Decision(None, ("large",), fields), Decision(None, ("huge",) if is_flagged_by_new else (), fields)
        books.see_flagged(source(0), b"k", fields, old.rules, 0)
        if is_flagged_by_new:
            books.see_flagged(source(0), b"k", fields, new.rules, 1)
        books.expect(Place(0, 0, 0), b"k", b"{}", new, 1)
        books.expect(Place(0, 0, 0), b"k", b"{}", old, 0, is_due=False)
        found = books.compare()
    assert (found["lost"], found["unexpected"], found["duplicated"]) == (0, 0, int(is_flagged_by_new))


def test_what_its_own_version_would_not_decide_is_unexpected() -> None:
    with bounded_database() as database:
        books = Books(database, [SCHEMA, SCHEMA], {0: 0}, {0: 2}, 9)
        fields = ("p", 5.0)
        books.see_flagged(source(0), b"k", fields, ("large",), 0)
        books.expect(Place(0, 0, 0), b"k", b"{}", Decision(None, ("large",), fields), 1)
        books.expect(Place(0, 0, 0), b"k", b"{}", Decision(None, (), fields), 0, is_due=False)
        found = books.compare()
    assert (found["lost"], found["unexpected"]) == (1, 1)
    assert found["examples"]["unexpected"][0].reason == "flagged by large, but it matches no rule"


def ended(*began: tuple[Ruling, dict[int, int], dict[int, int] | None]) -> Recorded:
    """As `recorded`, with the ends of the partitions when each version began."""
    versions = [Began(one.version, "t", begin, 0.0, ends) for one, begin, ends in began]
    return Recorded([], {}, {}, versions, {one.version: one for one, *_ in began})


def test_a_version_that_was_replaced_decides_nothing_that_came_later() -> None:
    rulings = Rulings(GIVEN, ended((FIRST, {0: 0}, {0: 5}), (SECOND, {0: 20}, {0: 30})))
    assert [rulings.see(source(offset, FIRST.version)) is None for offset in (19, 20, 29, 30, 7000)] == [
        False, False, False, True, True,
    ]  # fmt: skip
    assert rulings.see(source(0, FIRST.version, partition=1)) is None  # the partition was added later
    assert rulings.see(source(7000, SECOND.version)) is not None
    assert len(rulings.of([Place(0, 7000, 0)])[0]) == 1  # it is not taken for a right one either


def test_a_version_that_came_back_decides_again() -> None:
    back = ended((FIRST, {0: 0}, {0: 5}), (SECOND, {0: 20}, {0: 30}), (FIRST, {0: 50}, {0: 60}))
    rulings = Rulings(GIVEN, back)
    assert rulings.see(source(40, FIRST.version)) is None
    assert rulings.see(source(50, FIRST.version)) is not None
    assert rulings.see(source(59, SECOND.version)) is not None
    assert rulings.see(source(60, SECOND.version)) is None


def test_where_a_former_filter_noted_no_ends_its_version_has_none() -> None:
    rulings = Rulings(GIVEN, ended((FIRST, {0: 0}, None), (SECOND, {0: 20}, None)))
    assert rulings.see(source(7000, FIRST.version)) is not None
