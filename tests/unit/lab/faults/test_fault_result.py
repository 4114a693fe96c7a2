"""What is written about faults: the file, the table, what a user sees, and which losses are reported."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fraud_filter.audit.result import Finding
from fraud_filter.errors import FraudFilterError
from fraud_filter.text.tables import write_between
from lab.faults.inputs import outside, spans
from lab.faults.result import Outcome, markdown_table, write_outcomes
from lab.faults.witness import grown, notable
from lab.harness.outcome import Audited

DONE = Outcome("driver-kill", "continuous", Audited(0, 7, 0), 12.5, 30.0, "event=restarting reason=java-gone")


@pytest.mark.parametrize(
    ("change", "ok"),
    [
        ({}, True),
        ({"audit": Audited(0, 900, 0)}, True),
        ({"recovery_s": 31.0, "limit_s": None}, True),
        ({"recovery_s": 30.1}, False),
        ({"recovery_s": None}, False),
        ({"audit": Audited(1, 0, 0)}, False),
        ({"audit": Audited()}, False),
        ({"audit": Audited(0, 0, 1)}, False),
        ({"error": "x"}, False),
    ],
)
def test_only_duplicates_are_no_fault(change: dict[str, object], ok: bool) -> None:
    assert replace(DONE, **change).ok is ok  # type: ignore[arg-type]


def test_results_replace_those_of_the_same_fault_and_mode_only(tmp_path: Path) -> None:
    file = tmp_path / "faults.json"
    file.touch()
    write_outcomes(file, [DONE, replace(DONE, mode="real-time")], add=True)
    write_outcomes(file, [replace(DONE, audit=Audited(2, 7, 0))], add=True)
    found = json.loads(file.read_text())
    assert [(one["mode"], one["lost"]) for one in found] == [("real-time", 0), ("continuous", 2)]
    assert found[1] == {
        "fault": "driver-kill", "mode": "continuous", "lost": 2, "duplicated": 7, "unexpected": 0, "recovery_s": 12.5,
        "limit_s": 30.0, "seen_as": "event=restarting reason=java-gone", "error": "",
        "standby": False,
    }  # fmt: skip
    write_outcomes(file, [DONE], add=False)
    assert len(json.loads(file.read_text())) == 1


def test_the_table_stands_between_its_markers(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("before\n<!-- faults: begin -->\nold\n<!-- faults: end -->\nafter\n")
    late = replace(DONE, fault="broker-kill", recovery_s=None, audit=Audited(None, 7, 0), error="gone|away", seen_as="")
    beside = replace(DONE, audit=Audited(0, 3, 0), recovery_s=2.5, standby=True, seen_as="event=taking_over")
    items = write_outcomes(tmp_path / "faults.json", [late, beside, DONE], add=False)
    write_between(file, "faults", markdown_table(items, ["driver-kill", "broker-kill"]))
    assert file.read_text().splitlines() == [
        "before",
        "<!-- faults: begin -->",
        "| fault | mode | lost | duplicated | recovery, s | lost, with a standby | duplicated, with a standby | "
        "recovery, s, with a standby | seen as |",
        "|---|---|---|---|---|---|---|---|---|",
        "| `driver-kill` | `continuous` | 0 | 7 | 12.5 | 0 | 3 | 2.5 | event=restarting reason=java-gone; "
        "with a standby: event=taking_over |",
        "| `broker-kill` | `continuous` | - | 7 | - | - | - | - | gone\\|away |",
        "<!-- faults: end -->",
        "after",
    ]
    with pytest.raises(FraudFilterError, match="needs the lines <!-- other: begin -->"):
        write_between(file, "other", "")


def test_events_of_trouble_are_told_once_with_their_reason() -> None:
    log = """
2026-01-01 level=INFO event=started mode=continuous query=q run=1 partitions=2
2026-01-01 level=WARNING event=restarting mode=continuous query=q reason=java-gone in_s=1.2 attempt=1 cause='x'
2026-01-01 level=WARNING event=restarting mode=continuous query=q reason=java-gone in_s=2.2 attempt=2 cause='x'
2026-01-01 level=WARNING event=waiting_for_slots mode=continuous query=q needed=2 granted=0
2026-01-01 level=WARNING event=data_lost topic=payments records=12 lost='partition 0 offsets 3 to 14 (12 records)'
fraud-filter: unread records of the topic 'payments' are gone: partition 0 offsets 3 to 14 (12 records)
"""
    assert notable(log) == [
        "event=restarting reason=java-gone",
        "event=waiting_for_slots",
        "event=data_lost records=12",
        "filter ends: unread records of the topic 'payments' are gone: partition 0…",
    ]


def test_a_counter_is_told_by_what_it_has_grown() -> None:
    after = {"java-gone": 3.0, "stalled": 1.0, "query-failed": 0.0}
    assert grown("restarts_total", "reason", {"java-gone": 1.0, "stalled": 1.0}, after) == [
        'restarts_total{reason="java-gone"} +2'
    ]


def test_losses_that_no_report_names_are_found() -> None:
    reported = spans(
        "event=data_lost records=5 lost='partition 0 offsets 3 to 5 (3 records), partition 2 offsets 7 to 8"
    )
    assert reported == [(0, 3, 5), (2, 7, 8)]
    lost = [Finding(0, 3, ""), Finding(0, 5, ""), Finding(0, 6, ""), Finding(1, 3, ""), Finding(2, 8, "")]
    assert outside(lost, reported) == [lost[2], lost[3]]
