"""The audit's result and its report."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fraud_filter.audit.gaps import find_missing
from fraud_filter.audit.report import print_audit
from fraud_filter.audit.result import AuditResult, Finding, Gap
from fraud_filter.config import load
from lab.harness.outcome import Audited


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
    assert not _result(unjudged=1).ok
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


def test_what_cannot_be_judged_is_told_and_no_good_sign() -> None:
    result = _result(unjudged=1, examples={"unjudged": (Finding(0, 3, "OverflowError: too large"),)})
    text = _printed(result)
    assert "unjudged: partition 0, offset 3: OverflowError: too large" in text
    assert "the output is not what it should be" in text
    assert result.to_dict()["unjudged"] == 1
    assert result.to_dict()["examples"]["unjudged"][0]["offset"] == 3
    before = _result(unexpected=1)
    assert Audited.of(result, before) == Audited(0, 0, 0)
    assert not Audited.of(result).ok


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
