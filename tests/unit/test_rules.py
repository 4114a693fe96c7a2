from __future__ import annotations

from pathlib import Path

import pytest

from fraud_filter.config import HOME
from fraud_filter.errors import UsageError
from fraud_filter.rules import RuleSet, load_rules
from fraud_filter.schema import load_schema

SCHEMA = load_schema(HOME / "app/payment.ddl")


def _load(tmp_path: Path, text: str) -> RuleSet:
    file = tmp_path / "rules.yml"
    file.write_text(text)
    return load_rules(file, SCHEMA)


def test_the_shipped_rules() -> None:
    rules = load_rules(HOME / "app/rules.yml", SCHEMA).rules
    assert [rule.name for rule in rules] == [
        "large-amount", "foreign-cash", "night-gambling", "invalid-amount", "isPaymentFlagged", "stolen-card",
    ]  # fmt: skip
    assert rules[0].when == "amount >= 5000"
    assert rules[4].column == "payment_id"
    assert "card-stolen-0001" in rules[5].ids


def test_a_block_list_file_lies_beside_the_rules_and_may_hold_comments(tmp_path: Path) -> None:
    (tmp_path / "cards.txt").write_text("# reported\nc1\n\n  c2  \nc1\n")
    rules = _load(tmp_path, "rules:\n  - {name: stolen, blocked: {column: card_id, file: cards.txt}}\n").rules
    assert rules[0].ids == ("c1", "c2")


@pytest.mark.parametrize("name", ["../secret.txt", "{root}/secret.txt", "linked.txt", "lists/../../secret.txt"])
def test_a_block_list_file_of_another_place_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.txt").write_text("s3cret\n")
    (tmp_path / "rules" / "lists").mkdir(parents=True)
    (tmp_path / "rules" / "linked.txt").symlink_to(tmp_path / "secret.txt")
    file = name.format(root=tmp_path)
    with pytest.raises(UsageError, match=r"is not below .*rules, where the rules are") as refused:
        _load(tmp_path / "rules", f"rules:\n  - {{name: stolen, blocked: {{column: card_id, file: '{file}'}}}}\n")
    assert "s3cret" not in str(refused.value)


def test_a_block_list_file_may_lie_in_a_folder_below(tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "cards.txt").write_text("c1\n")
    rules = _load(tmp_path, "rules:\n  - {name: stolen, blocked: {column: card_id, file: lists/cards.txt}}\n").rules
    assert rules[0].ids == ("c1",)


def test_numbers_are_ids_too(tmp_path: Path) -> None:
    rules = _load(tmp_path, "rules:\n  - {name: stolen, blocked: {column: card_id, ids: [1, a]}}\n").rules
    assert rules[0].ids == ("1", "a")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rules:\n  - name: a\n    when: [\n", "line 4"),
        ("- name: a", "must hold one key"),
        ("rules: []", "holds no rule"),
        ("rules:\n  - name: a\n", "either `when:`"),
        ("rules:\n  - {name: a, when: 'true', blocked: {column: card_id, ids: [x]}}\n", "either `when:`"),
        ("rules:\n  - {name: a, wen: 'true'}\n", "wen"),
        ("rules:\n  - {name: 'a b', when: 'true'}\n", "pattern"),
        ("rules:\n  - {when: 'true'}\n", "number 1.*name"),
        ("rules:\n  - {name: a, when: 'true'}\n  - {name: a, when: 'false'}\n", r"line 3, rule 'a'.*taken.*line 2"),
        ("rules:\n  - name: a\n    when: 'true'\n    when: 'false'\n", r"line 4.*stands twice"),
        ("rules:\n  - {name: a, blocked: {column: nobody, ids: [x]}}\n", "unknown column 'nobody'"),
        ("rules:\n  - {name: a, blocked: {column: card_id, file: no.txt}}\n", r"no\.txt can't be read"),
        ("rules:\n  - {name: a, blocked: {column: card_id}}\n", "either as"),
        ("rules:\n  - {name: a, blocked: {column: card_id, ids: [x], file: y}}\n", "either as"),
        ("rules:\n  - {name: a, blocked: {column: card_id, ids: [[x]]}}\n", "string"),
        ("rules:\n  - 5\n", "number 1"),
    ],
)
def test_what_is_no_rule_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        _load(tmp_path, text)
    assert "rules" in str(refused.value)


def test_an_empty_block_list_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cards.txt").write_text("# nothing yet\n")
    with pytest.raises(UsageError, match="holds no id"):
        _load(tmp_path, "rules:\n  - {name: stolen, blocked: {column: card_id, file: cards.txt}}\n")


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="can't be read"):
        load_rules(tmp_path / "rules.yml", SCHEMA)
