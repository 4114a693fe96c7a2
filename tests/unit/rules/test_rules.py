from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fraud_filter.errors import UsageError
from fraud_filter.home import HOME
from fraud_filter.rules.ruleset import RuleSet, load_rules, read_rules
from fraud_filter.schema import load_schema

SCHEMA = load_schema(HOME / "app/payment.ddl")


def _load(tmp_path: Path, text: str) -> RuleSet:
    file = tmp_path / "rules.yml"
    file.write_text(text)
    return load_rules(file, SCHEMA)


@pytest.mark.parametrize("file", ["cards.txt", "lists/cards.txt"])
def test_a_block_list_file_lies_beside_the_rules_or_below_and_may_hold_comments(tmp_path: Path, file: str) -> None:
    (tmp_path / "lists").mkdir()
    (tmp_path / file).write_text("# reported\nc1\n\n  c2  \nc1\n")
    rules = _load(tmp_path, f"rules:\n  - {{name: stolen, blocked: {{column: card_id, file: {file}}}}}\n").rules
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


def test_an_id_is_the_text_as_it_is_written(tmp_path: Path) -> None:
    """To YAML some of these are a truth value, octal and other numbers, a date, and nothing."""
    written = ("NO", "00123", "1", "0x1F", "1_000", "12:30:45", "2024-01-01", "~", "1.50", "a", "'007'", '"x y"')
    rules = _load(
        tmp_path, f"rules:\n  - {{name: stolen, blocked: {{column: card_id, ids: [{', '.join(written)}]}}}}\n"
    )
    assert rules.rules[0].ids == tuple(one.strip("'\"") for one in written)


def test_a_byte_order_mark_is_no_part_of_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "cards.txt").write_bytes(b"\xef\xbb\xbfc1\r\nc\xe2\x80\xa82\r\n\xef\xbb\xbfc3")
    text = "\ufeffrules:\n  - {name: stolen, blocked: {column: card_id, file: cards.txt}}\n"
    assert _load(tmp_path, text).rules[0].ids == ("c1", "c\u20282", "c3")


@pytest.mark.parametrize(
    ("column", "ids", "reason"),
    [
        ("count", "[1, 02]", "'count' is a BIGINT and never equal to the id '02'"),
        ("count", "[9223372036854775807, 9223372036854775808]", "never equal to the id '9223372036854775808'"),
        ("count", f"['{'9' * 5000}']", "never equal to the id '9999"),
        ("count", "[-0]", "never equal to the id '-0'"),
        ("count", "[a]", "never equal to the id 'a'"),
        ("amount", "[1]", "'amount' is a DOUBLE; a block list needs a STRING, TINYINT, SMALLINT, INT, BIGINT"),
        ("day", "[2024-01-01]", "'day' is a DATE; a block list needs"),
        ("card", "['']", r"ids\.0: must not be empty"),
    ],
)
def test_ids_that_the_field_is_never_equal_to_are_refused(tmp_path: Path, column: str, ids: str, reason: str) -> None:
    (tmp_path / "payment.ddl").write_text("card STRING, count BIGINT, amount DOUBLE, day DATE")
    (tmp_path / "rules.yml").write_text(f"rules:\n  - {{name: a, blocked: {{column: {column}, ids: {ids}}}}}\n")
    with pytest.raises(UsageError, match=reason):
        load_rules(tmp_path / "rules.yml", load_schema(tmp_path / "payment.ddl"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rules:\n  - name: a\n    when: [\n", "line 4"),
        ("- name: a", "must be a mapping"),
        ("features: 5\nrules: [{name: a, when: 'true'}]\n", "features: must be a list"),
        ("rule: []\n", r"rule: unknown key \(did you mean 'rules'\?\); there are rules, features, model"),
        ("rules:\n  - {when: 'true'}\n", "line 2, rule 'without a name': name: is missing"),
        ("rules:\n  - name: a\n    when: 'true'\n    when: 'false'\n", "line 4, column 5: the key 'when' stands twice"),
        ("rules:\n  - {name: a, blocked: {column: card_id, file: empty.txt}}\n", "holds no id"),
        ("rules:\n  - {name: a, blocked: {column: card_id, file: no.txt}}\n", r"no\.txt can't be read"),
        ("rules:\n  - {name: a, blocked: {column: card_id, file: pipe.txt}}\n", "there is no such file"),
        ("rules:\n  - {name: a, blocked: {column: card_id, file: utf16.txt}}\n", "save it as UTF-8"),
        ("rules:\n  - {name: a, blocked: {column: card_id, file: tabs.txt}}\n", "one id a line and no tabs"),
        ("rules:\n  - {name: a, blocked: {column: card_id, ids: [x], file: y}}\n", "either as"),
        ("rules:\n  - 5\n", r"rules\.0: must be a mapping"),
        (
            r"""rules: [{name: a, when: "merchant = '\ud800'"}]""",
            "column 25: the text holds half of a",
        ),
    ],
)
def test_what_is_no_rule_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "empty.txt").write_text("# nothing yet\n")
    (tmp_path / "utf16.txt").write_text("c1\nc2\n", encoding="utf-16-le")
    (tmp_path / "tabs.txt").write_text("c1\nc2\tstolen\n")
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(UsageError, match=said) as refused:
        _load(tmp_path, text)
    assert "rules" in str(refused.value)


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text("""\
rules:
  - {name: a, wen: amount > 1}
  - {name: 7, when: 'true'}
  - {name: b c, when: [1]}
  - {name: right, when: amount > 1}
  - {name: right, when: amount > 2}
  - {name: both, when: 'true', blocked: {column: card_id, ids: [x]}}
  - {name: list, blocked: {colum: card_id, file: no.txt, ids: [{}]}}
  - {name: column, blocked: {column: card, file: no.txt}}
  - {name: empty, when: ' '}
  - {name: open, when: "merchant = 'x"}
  - {name: name, when: amnt > 100}
  - {name: type, when: amount + 1}
""")
    rules, lines = read_rules(tmp_path / "rules.yml", SCHEMA)
    assert [rule.name for rule in rules.rules] == ["right"]
    expected = [
        ("line 2, rule 'a'", "wen: unknown key (did you mean 'when'?); there are name, description, when, blocked"),
        ("line 3, rule '7'", "name: must begin with a letter"),
        ("line 4, rule 'b c'", "name: must begin with a letter and have at most 64"),
        ("line 4, rule 'b c'", "when: must be a text"),
        ("line 6, rule 'right'", "the name is taken by the rule on line 5; give it another"),
        ("line 7, rule 'both'", "either `when:`"),
        ("line 8, rule 'list'", "blocked.column: is missing; give it"),
        ("line 8, rule 'list'", "blocked.ids.0: must be a text"),
        ("line 8, rule 'list'", "blocked.colum: unknown key (did you mean 'column'?); there are column, ids, file"),
        ("line 9, rule 'column'", "unknown field 'card' (did you mean 'card_id'?)"),
        ("line 10, rule 'empty'", "when: is empty; give a predicate"),
        ("line 11, rule 'open'", "the quotation that begins with ' has no end"),
        ("line 12, rule 'name'", "line 1, column 1 of 'amnt > 100': unknown column 'amnt' (did you mean 'amount'?)"),
        ("line 13, rule 'type'", "'amount + 1' is of type double; a predicate is true or false"),
    ]
    assert len(lines) == len(expected), "\n".join(lines)
    for line, (where, what) in zip(lines, expected, strict=True):
        assert line.startswith(f"rules.yml, {where}: "), line
        assert what in line


def _call_check(tmp_path: Path, text: str, **env: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "rules.yml").write_text(text)
    argv = [sys.executable, "-m", "fraud_filter", "rules", "check", "--rules", str(tmp_path / "rules.yml")]
    return subprocess.run(argv, env={**os.environ, **env}, capture_output=True, text=True, timeout=200, check=False)


def test_rules_are_checked_without_java(tmp_path: Path) -> None:
    text = "rules:\n  - {name: a, wen: amount > 1}\n  - {name: b, when: amnt > 1}\n  - {name: c, when: (amount > 1}\n"
    without_java = {"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": str(tmp_path)}
    done = _call_check(tmp_path, text, **without_java)
    assert done.returncode == 2
    assert [line.partition("rule ")[2][:3] for line in done.stderr.splitlines()] == ["'a'", "'b'", "'c'"]
    right = "rules:\n  - {name: a, when: amount > 1}\n  - {name: b, blocked: {column: card_id, ids: [x]}}\n"
    done = _call_check(tmp_path, right, **without_java)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 rules OK (1 blocked ids)" in done.stdout
