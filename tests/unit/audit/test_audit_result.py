"""The audit's result, what it says of labelled fraud, and how it is shown."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fraud_filter.audit.gaps import find_missing
from fraud_filter.audit.result import AuditResult, Detection, Finding, Gap, print_audit
from fraud_filter.config import load
from fraud_filter.home import HOME
from fraud_filter.rules.ruleset import load_rules
from fraud_filter.schema import load_schema
from lab.harness.outcome import Audited

SCHEMA = load_schema(HOME / "app/payment.ddl")
RULES = """\
features:
  - {name: payments_1h, per: card_id, over: 1 hour, value: count}
rules:
  - {name: large, when: amount > 100}
  - {name: burst, when: payments_1h > 3}
  - {name: both, when: PAYMENTS_1H > 3 AND amount > 100}
"""


def _result(**changes: Any) -> AuditResult:
    right: dict[str, Any] = {
        "start": {0: 0}, "end": {0: 5}, "payments": 5, "expected": 2, "written": 2, "lost": 0, "undecided": 0,
        "duplicated": 0, "unexpected": 0, "rejected": 1, "rejected_expected": 1,
        "reject_reasons": {"malformed-json": 1}, "examples": {}, "took_s": 0.1,
    }  # fmt: skip
    return AuditResult(**(right | changes))


def _printed(result: AuditResult, **settings: str) -> str:
    console = Console(file=io.StringIO(), width=100)
    print_audit(result, load(settings), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


GAP, FINDING = Gap(0, 3, 2003), Finding(0, 3, "should be [x]")
SHOWN = "partition 0, offset 3: should be [x]"


@pytest.mark.parametrize(
    ("changes", "ok", "complete", "told"),
    [
        ({}, True, True, ["records that should not be there", "nothing lost, nothing unexpected"]),
        ({"duplicated": 7}, True, True, ["nothing lost, nothing unexpected"]),
        ({"lost": 1234, "examples": {"lost": (FINDING,)}}, False, True, ["1,234", f"lost: {SHOWN}"]),
        ({"lost": 1234, "undecided": 1200}, False, True, ["1,200 of the 1,234 lost come after the last decision"]),
        ({"unexpected": 1}, False, True, ["the output is not what it should be"]),
        ({"unjudged": 1, "examples": {"unjudged": (FINDING,)}}, False, True, [f"unjudged: {SHOWN}"]),
        ({"gaps": (GAP,)}, False, True, ["removed: partition 0 offsets 3 to 2002 (2,000 payments)"]),
        ({"missing": (GAP,)}, True, False, ["not audited, no longer retained: partition 0 offsets 3", "--allow-gap"]),
        ({"payments": 0}, True, False, ["Nothing to audit: payments holds no record at offsets 0: 0 to 5."]),
        ({"payments": 0, "unexpected": 1}, False, False, ["records that should not be there"]),
    ],
)  # fmt: skip
def test_the_verdict_and_what_is_told(changes: dict[str, Any], ok: bool, complete: bool, told: list[str]) -> None:
    result = _result(**changes)
    text = " ".join(_printed(result).split())
    assert (result.ok, result.complete) == (ok, complete)
    assert ("nothing lost" in text) == (ok and complete)
    assert ("the output is not what it should be" in text) == (not ok)
    assert ("still to decide" in text) == ("undecided" in changes)
    assert all(part in text for part in told)


def test_of_a_query_without_expect_it_is_said_that_the_lost_are_not_told() -> None:
    result = _result(lost=None, expected=None, rejected=0, rejected_expected=0, not_told="what is lost can't be told")
    text = _printed(result, query="own.py:transform")
    assert (result.ok, result.to_dict()["lost"], result.to_dict()["expected"]) == (True, None, None)
    assert "rows written" in text
    assert not any(word in text for word in ("flagged", "rejected", "approved", "nothing lost", "records lost"))
    assert text.splitlines()[-2:] == ["what is lost can't be told", "nothing unexpected (0.1 s)"]


def test_the_result_is_plain_json(tmp_path: Path) -> None:
    (tmp_path / "audit.json").write_text(
        json.dumps(_result(examples={"lost": (FINDING,)}, gaps=(GAP,), missing=(GAP,)).to_dict()), encoding="utf-8"
    )
    read = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert (read["ok"], read["complete"], read["removed"], read["end"]) == (False, False, 2000, {"0": 5})
    assert read["examples"] == {"lost": [{"partition": 0, "offset": 3, "reason": "should be [x]"}]}
    assert read["gaps"] == read["missing"] == [{"partition": 0, "start": 3, "end": 2003}]


def test_what_cannot_be_judged_counts_as_unexpected_where_results_are_compared() -> None:
    assert Audited.of(_result(unjudged=1)) == Audited(0, 0, 1, 0)
    assert Audited.of(_result(unjudged=1, lost=3), _result(unexpected=1)) == Audited(3, 0, 0, 0)


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


def test_each_family_is_judged_by_the_payments_with_a_label(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(RULES)
    rules = load_rules(tmp_path / "rules.yml", SCHEMA)
    detection, without = Detection(rules), Detection(rules.without_features())
    for label, matched in (
        (b"bust-out", ["burst", "both"]),  # once for the family
        (b"bust-out", ["large"]),
        (b"card-testing", []),
        (b"card-testing", ["burst"]),
        (b"legitimate", ["burst", "of another version"]),
        (b"legitimate", []),
    ):
        detection.see([("generated.at", b"1"), ("label", label)], matched)
    for headers in (None, [("generated.at", b"1")]):
        detection.see(headers, ["large"])
    assert (detection.labelled, detection.fraud) == (6, 4)
    assert detection.families == {
        "rules": {"precision": 1.0, "recall": 0.25}, "velocity": {"precision": 0.6667, "recall": 0.5},
    }  # fmt: skip
    assert without.families == {"rules": {"precision": None, "recall": None}}  # nothing to divide by
    without.see([("label", b"legitimate")], ["large"])
    assert without.families == {"rules": {"precision": 0.0, "recall": None}}
