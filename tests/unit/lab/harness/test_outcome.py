"""The counts that all results share: their sums, and their place in a file of results."""

from __future__ import annotations

from dataclasses import dataclass

from lab.harness.outcome import NOT_AUDITED, Audited, to_plain


@dataclass(frozen=True)
class Result:
    name: str
    audit: Audited
    seconds: float


def test_what_one_of_several_does_not_know_their_sum_does_not_know() -> None:
    assert Audited.total([Audited(0, 3, 1, 2), Audited(2, 4, 0, 0)]) == Audited(2, 7, 1, 2)
    assert Audited.total([Audited(0, 3, 1), Audited(2, None, 0)]) == Audited(2, None, 1)
    assert Audited.total([]) == NOT_AUDITED
    assert not NOT_AUDITED.ok


def test_a_file_has_the_counts_where_the_audit_stands() -> None:
    plain = to_plain(Result("a", Audited(0, 3, None), 1.5))
    assert list(plain) == ["name", "lost", "duplicated", "unexpected", "late_writes", "seconds"]
    assert list(plain.values()) == ["a", 0, 3, None, None, 1.5]
