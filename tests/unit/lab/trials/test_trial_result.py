"""What is written about trials: the file, the tables, gaps, and what a user sees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fraud_filter import schema as layout
from fraud_filter.cli.main import cli
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME
from lab.harness.outcome import NOT_AUDITED, Audited, to_plain
from lab.harness.tables import NOT_MEASURED, find_place
from lab.trials.gap import FlaggedTail, Gap
from lab.trials.plan import Trial
from lab.trials.result import Outcome, markdown_table, read_outcomes, write_outcomes
from lab.trials.witness import notable

KILL = Trial("kill", "real-time", "real-time", standby=True)
DONE = Outcome(KILL, 0.5, 1.5, Audited(0, 5, 0, 5))


@pytest.mark.parametrize(
    ("change", "ok"),
    [
        ({}, True),
        ({"audit": Audited(0, 1, 0)}, False),
        ({"audit": Audited(0, 5, 0, 5)}, True),
        ({"audit": Audited(0, 6, 0, 5)}, False),
        ({"audit": Audited(1, 0, 0)}, False),
        ({"audit": Audited(0, 0, 1)}, False),
        ({"audit": Audited()}, False),
        ({"error": "x"}, False),
        ({"recovery_s": 31.0}, True),
        ({"recovery_s": 31.0, "limit_s": 30.0}, False),
    ],
)
def test_only_duplicates_are_no_fault(change: dict[str, object], ok: bool) -> None:
    assert replace(DONE, **change).ok is ok  # type: ignore[arg-type]


def test_results_replace_those_of_the_same_kind_only(tmp_path: Path) -> None:
    file = tmp_path / "trials.json"
    file.touch()
    alone, other = (replace(DONE, trial=replace(KILL, **of)) for of in ({"standby": False}, {"given": "emit=all"}))
    write_outcomes(file, [DONE, alone, other], add=True)
    assert [one["gap_s"] for one in write_outcomes(file, [replace(DONE, gap_s=0.7)], add=True)] == [0.5, 0.5, 0.7]
    assert len(write_outcomes(file, [DONE], add=False)) == 1


@pytest.mark.parametrize("content", ["no json", "{}", '[{"mode": "continuous"}]', "[1]"])
def test_results_are_not_added_to_something_else(tmp_path: Path, content: str) -> None:
    file = tmp_path / "notes.json"
    file.write_text(content)
    with pytest.raises(UsageError, match=r"argument --add: .*notes\.json .*--output"):
        write_outcomes(file, [DONE], add=True)
    assert file.read_text() == content


def items() -> list[dict[str, Any]]:
    changed = Trial("stop", "continuous", "real-time", cards=100_000, in_turn=True)
    away = Trial("outage", "real-time", "real-time", records=2_000_000, given="emit=all")
    found = [
        DONE, replace(DONE, gap_s=0.7, audit=Audited(0, 9, 0, 9), seen_as="event=taking_over; alert A"),
        replace(DONE, gap_s=2.0),
        replace(DONE, trial=replace(KILL, stage="stack"), seen_as="event=taking_over"),
        Outcome(changed, error="died [/127.0.0.1:9092]"),
        replace(DONE, trial=away, details={"records_per_s": 50_000, "peak_mib": 1200}),
    ]  # fmt: skip
    return [one.to_dict() for one in found]


def test_a_kind_is_a_line_with_median_worst_and_what_was_seen() -> None:
    assert markdown_table(items()).splitlines()[2:] == [
        "| kill | embedded | real-time | yes | 3 | 0.7 | 2 | 1.5 | 0 | 9 | 0 | event=taking_over; alert A |",
        "| kill | stack | real-time | yes | 1 | 0.5 | 0.5 | 1.5 | 0 | 5 | 0 | event=taking_over |",
        "| stop, in turn, 100,000 cards | embedded | continuous → real-time | no | 1 | ? | ? | ? | ? | ? | ? | "
        "died [/127.0.0.1:9092] |".replace("?", NOT_MEASURED),
        "| outage, 2,000,000 records, emit=all | embedded | real-time | no | 1 | 0.5 | 0.5 | 1.5 | 0 | 5 | 0 | "
        "50,000 records/s; peak 1,200 MiB |",
    ]


def test_the_table_of_earlier_results_is_written_without_a_run(tmp_path: Path) -> None:
    file, page = tmp_path / "trials.json", tmp_path / "trials.md"
    write_outcomes(file, [DONE], add=False)
    page.write_text("before\n<!-- trials: begin -->\nold\n<!-- trials: end -->\nafter\n")
    argv = ["lab", "trial", "--table", "--output", str(file), "--docs", str(page)]
    done = CliRunner().invoke(cli, argv, standalone_mode=False)
    assert (done.exception, done.return_value) == (None, 0)
    assert page.read_text() == (
        f"before\n<!-- trials: begin -->\n{markdown_table([DONE.to_dict()])}\n<!-- trials: end -->\nafter\n"
    )


def test_the_documented_table_is_that_of_its_raw_data() -> None:
    page = HOME / "docs/results/trials.md"
    before, after = find_place(page, "trials")
    shown = page.read_text(encoding="utf-8").removeprefix(before).removesuffix(after)
    assert shown.strip() == markdown_table(read_outcomes(HOME / "docs/results/trials.json"))


def test_a_place_for_the_table_is_asked_for_before_the_work(tmp_path: Path) -> None:
    page = tmp_path / "trials.md"
    page.write_text("no place\n")
    done = CliRunner().invoke(cli, ["lab", "trial", "--docs", str(page)], standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert "<!-- trials: begin -->" in str(done.exception)


class Record:
    """A decision about a payment of a partition, appended so many seconds after 1970."""

    def __init__(self, partition: int, at: float) -> None:
        self.partition, self.at = partition, at

    def error(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 2, round(self.at * 1000)

    def headers(self) -> list[tuple[str, bytes]]:
        texts = {
            layout.HEADER_TOPIC: "payments",
            layout.HEADER_PARTITION: str(self.partition),
            layout.HEADER_OFFSET: "0",
            layout.HEADER_TIMESTAMP: str(round(self.at * 1000) - 1),
        }
        return [(name, text.encode()) for name, text in texts.items()]


class Records:
    """What a consumer would give, all at once."""

    def __init__(self, *records: Record) -> None:
        self._records = list(records)

    def consume(self, _: int, timeout: float) -> list[Record]:
        assert timeout > 0
        given, self._records = self._records, []
        return given


def read(at: float, *records: Record) -> tuple[Gap, Gap]:
    consumer: Any = Records(*records)
    tail = FlaggedTail(consumer, 2)
    return tail.await_fresh(at, 1), tail.longest


def test_the_gap_ends_with_a_decision_about_a_payment_that_came_after_and_then_in_each_partition() -> None:
    fresh, _ = read(11.5, Record(0, 11.0), Record(1, 11.4), Record(0, 12.0), Record(0, 12.1), Record(1, 14.0))
    assert fresh == Gap(0.5, 2.5)


def test_the_longest_gap_is_that_between_any_two_and_within_a_partition() -> None:
    """In whatever order the partitions are read."""
    _, longest = read(9.0, Record(0, 10.0), Record(0, 11.0), Record(1, 10.4), Record(1, 11.9))
    assert longest == Gap(0.9, 1.5)


def test_one_decision_is_no_gap() -> None:
    _, longest = read(9.0, Record(0, 10.0), Record(1, 10.0))
    assert longest == Gap(0.0, 0.0)


def test_events_of_trouble_are_told_once_with_their_reason() -> None:
    log = """
2026-01-01 level=INFO event=started mode=continuous query=q run=1 partitions=2
2026-01-01 level=WARNING event=restarting mode=continuous query=q reason=java-gone in_s=1.2 attempt=1 cause=x
2026-01-01 level=WARNING event=restarting mode=continuous query=q reason=java-gone in_s=2.2 attempt=2 cause=x
2026-01-01 level=WARNING event=waiting_for_slots mode=continuous query=q needed=2 granted=0
2026-01-01 level=WARNING event=data_lost topic=payments records=12 lost="partition 0 offsets 3 to 14 (12 records)"
fraud-filter: unread records of the topic 'payments' are gone: partition 0 offsets 3 to 14 (12 records)
"""
    assert notable(log) == [
        "event=restarting reason=java-gone",
        "event=waiting_for_slots",
        "event=data_lost records=12",
        "filter ends: unread records of the topic 'payments' are gone: partition 0…",
    ]


# -- the counts that all results share: their sums, and their place in a file of results


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
