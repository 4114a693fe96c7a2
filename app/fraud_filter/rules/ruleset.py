"""The rules file: what a rule is, and how it is read. Knows no Spark: `rule_check` asks Spark whether predicates hold.

A rule has a name and either a Spark SQL predicate (`when`) or a list of blocked ids (`blocked`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fraud_filter.errors import UsageError
from fraud_filter.rules.entry import Blocked, parse_entry
from fraud_filter.rules.syntax import find_flaw
from fraud_filter.schema import PaymentSchema
from fraud_filter.text.nearest import did_you_mean
from fraud_filter.text.yaml_text import parse_yaml


@dataclass(frozen=True)
class Rule:
    """One rule. Exactly one of `when` (a Spark SQL predicate) and `column` with `ids` (a block list) is set.

    `line` is the line of the rules file on which the rule begins, counted from 1.
    """

    name: str
    line: int
    description: str = ""
    when: str | None = None
    column: str | None = None
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class RuleSet:
    """The rules of one file, in its order."""

    path: Path
    rules: tuple[Rule, ...]

    def refuse(self, rule: Rule, reason: str) -> UsageError:
        """The error that refuses `rule`: names the file, its line, the rule and the reason."""
        return UsageError(_refusal(self.path, rule.line, rule.name, reason))


class _Listed(NamedTuple):
    """An entry of the list of rules, as YAML has it, and where it stands."""

    given: Any
    node: yaml.Node
    label: str

    @property
    def line(self) -> int:
        """Counted from 1."""
        return int(self.node.start_mark.line) + 1


def load_rules(path: Path, schema: PaymentSchema) -> RuleSet:
    """Reads and checks a rules file as far as that needs no Spark.

    Raises:
        UsageError: the file can't be read or is not YAML; or rules are refused, a line for each reason.
    """
    rules, refused = read_rules(path, schema)
    if refused:
        raise UsageError("\n".join(refused))
    return rules


def read_rules(path: Path, schema: PaymentSchema) -> tuple[RuleSet, list[str]]:
    """The rules of a file that are right as far as that can be told without Spark, and a line for each reason against
    the others: unknown or missing keys, wrong types, a name or a key twice, a block list on an unknown column or that
    can't be read, a predicate that Spark surely refuses.

    Raises:
        UsageError: the file can't be read, is not YAML, or holds no list of rules.
    """
    rules: list[Rule] = []
    refused: list[str] = []
    names: dict[str, int] = {}
    for one in _read(path):
        rule, flaws = _rule(path, one, schema)
        if one.label in names:
            flaws.append(f"the name is taken by the rule on line {names[one.label]}; give it another")
        names.setdefault(one.label, one.line)
        refused += [_refusal(path, one.line, one.label, flaw) for flaw in flaws]
        if rule and not flaws:
            rules.append(rule)
    return RuleSet(path, tuple(rules)), refused


def _refusal(path: Path, line: int, label: str, reason: str) -> str:
    return f"{path.name}, line {line}, rule {label!r}: {reason}"


def _read(path: Path) -> list[_Listed]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"setting rules: {path} can't be read: {error}") from None
    try:
        document = parse_yaml(text)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise UsageError(f"setting rules: {path}{where}: not valid YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"setting rules: {path}: not valid YAML: {error}") from None
    if not isinstance(document, dict) or set(document) != {"rules"} or not isinstance(document["rules"], list):
        raise UsageError(f"setting rules: {path} must hold one key, `rules:`, with a list of rules")
    if not document["rules"]:
        raise UsageError(f"setting rules: {path} holds no rule; give at least one")
    assert isinstance(root, yaml.MappingNode)  # noqa: S101 - the document is a mapping, seen above
    for flaw in _repeated(root):
        raise UsageError(f"setting rules: {path}: {flaw}")
    name, listed = root.value[0]
    if name.value != "rules" or not isinstance(listed, yaml.SequenceNode):  # merged in from elsewhere (`<<:`)
        raise UsageError(f"setting rules: {path} must hold `rules:` itself, with a list of rules")
    pairs = enumerate(zip(document["rules"], listed.value, strict=True), start=1)
    return [_Listed(given, node, _label(given, number)) for number, (given, node) in pairs]


def _label(given: Any, number: int) -> str:
    name = given.get("name") if isinstance(given, dict) else None
    return name if isinstance(name, str) else f"number {number}"


def _repeated(node: yaml.MappingNode) -> Iterator[str]:
    """Keys that stand twice: YAML keeps the last one, which would silently drop half a rule."""
    seen = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and (key.tag, key.value) in seen:
            mark = key.start_mark
            yield f"line {mark.line + 1}, column {mark.column + 1}: the key {key.value!r} stands twice; keep one"
        seen.add((key.tag, str(key.value)))


def _all_repeated(node: yaml.Node) -> list[str]:
    """Those of an entry and of what is in it; a node may be part of itself."""
    flaws: list[str] = []
    waiting, known = [node], set()
    while waiting:
        part = waiting.pop()
        if id(part) in known:
            continue
        known.add(id(part))
        if isinstance(part, yaml.MappingNode):
            flaws += _repeated(part)
            waiting += [value for _, value in part.value]
        elif isinstance(part, yaml.SequenceNode):
            waiting += part.value
    return flaws


def _rule(path: Path, one: _Listed, schema: PaymentSchema) -> tuple[Rule | None, list[str]]:
    """The rule, and all that is wrong with it."""
    entry, flaws = parse_entry(one.given)
    flaws = _all_repeated(one.node) + flaws
    if entry is None:
        return None, flaws
    if entry.when is not None:
        flaw = find_flaw(entry.when, schema)
        return Rule(entry.name, one.line, entry.description, when=entry.when), flaws + ([flaw] if flaw else [])
    assert entry.blocked  # noqa: S101 - an entry has one of the two
    names = [field.name for field in schema.fields]
    column, ids = entry.blocked.column, tuple(entry.blocked.ids)
    if column not in names:
        flaws.append(
            f"unknown column {column!r}{did_you_mean(column, names)}; a payment has {', '.join(sorted(names))}"
        )
    try:
        ids = ids or _ids(path, entry.blocked)
    except ValueError as error:
        flaws.append(str(error))
    return Rule(entry.name, one.line, entry.description, column=column, ids=ids), flaws


def _ids(path: Path, blocked: Blocked) -> tuple[str, ...]:
    """The ids of a block list's file; a ValueError says why there are none."""
    name = blocked.file or ""
    file = path.parent / name
    try:
        inside = file.resolve().is_relative_to(path.parent.resolve())
        text = file.read_text(encoding="utf-8") if inside else ""
    except (OSError, ValueError, RuntimeError) as error:  # a zero byte in the name, text that is not UTF-8, a loop
        raise ValueError(f"the block list {file} can't be read: {error}; name a text file beside the rules") from None
    if not inside:
        raise ValueError(f"the block list {name} is not below {path.parent}, where the rules are; put it there")
    lines = (line.strip() for line in text.splitlines())
    ids = tuple(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
    if not ids:
        raise ValueError(f"the block list {file} holds no id; give at least one, one a line")
    return ids
