"""The rules file: what a rule is, and how it is read. Knows no Spark: `rule_check` asks Spark whether predicates hold.

A rule has a name and either a Spark SQL predicate (`when`) or a list of blocked ids (`blocked`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from fraud_filter.errors import UsageError
from fraud_filter.schema import PaymentSchema
from fraud_filter.yaml_text import parse_yaml


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
        return UsageError(f"{self.path.name}, line {rule.line}, rule {rule.name!r}: {reason}")


class _Blocked(BaseModel):
    model_config = ConfigDict(extra="forbid")
    column: str
    ids: list[Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)]] = []
    file: str | None = None

    @model_validator(mode="after")
    def _one_source(self) -> _Blocked:
        if bool(self.ids) == (self.file is not None):
            raise ValueError("give the blocked ids either as `ids: [...]` or as `file: NAME`")
        return self


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
    description: str = ""
    when: Annotated[str, Field(min_length=1)] | None = None
    blocked: _Blocked | None = None

    @model_validator(mode="after")
    def _one_test(self) -> _Entry:
        if (self.when is None) == (self.blocked is None):
            raise ValueError("a rule has either `when:` (a predicate) or `blocked:` (a list of ids)")
        return self


class _UniqueKeys(yaml.SafeLoader):
    """YAML lets a key stand twice and keeps the last one: here that would silently drop half a rule."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be a word", problem_mark=key_node.start_mark)
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f"the key {key!r} stands twice", problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_rules(path: Path, schema: PaymentSchema) -> RuleSet:
    """Reads and checks a rules file as far as that needs no Spark.

    Raises:
        UsageError: the file can't be read, is not YAML, has an unknown or missing key, a name twice, a block list
            on an unknown column, or a block-list file that can't be read.
    """
    entries, lines = _read(path)
    rules: list[Rule] = []
    for number, (entry, line) in enumerate(zip(entries, lines, strict=True), start=1):
        rules.append(_rule(path, entry, number, line))
    rule_set = RuleSet(path, tuple(rules))
    known = {field.name for field in schema.fields}
    seen: dict[str, int] = {}
    for rule in rules:
        if rule.name in seen:
            raise rule_set.refuse(rule, f"the name is taken by the rule on line {seen[rule.name]}; give it another")
        seen[rule.name] = rule.line
        if rule.column is not None and rule.column not in known:
            raise rule_set.refuse(rule, f"unknown column {rule.column!r}; a payment has {', '.join(sorted(known))}")
    return rule_set


def _read(path: Path) -> tuple[list[Any], list[int]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"setting rules: {path} can't be read: {error}") from None
    try:
        document = parse_yaml(text, _UniqueKeys)
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
    name, listed = root.value[0]
    if name.value != "rules" or not isinstance(listed, yaml.SequenceNode):  # merged in from elsewhere (`<<:`)
        raise UsageError(f"setting rules: {path} must hold `rules:` itself, with a list of rules")
    return document["rules"], [item.start_mark.line + 1 for item in listed.value]


def _rule(path: Path, entry: Any, number: int, line: int) -> Rule:
    label = entry["name"] if isinstance(entry, dict) and isinstance(entry.get("name"), str) else f"number {number}"
    try:
        checked = _Entry.model_validate(entry)
    except ValidationError as error:
        detail = error.errors()[0]
        key = ".".join(str(part) for part in detail["loc"])
        reason = str(detail["msg"]).removeprefix("Value error, ")
        raise UsageError(
            f"{path.name}, line {line}, rule {label!r}: {key + ': ' if key else ''}{reason} "
            f"(got {str(detail['input'])[:80]!r})"
        ) from None
    blocked = checked.blocked
    if blocked is None:
        return Rule(checked.name, line, checked.description, when=checked.when)
    ids = tuple(blocked.ids) if blocked.file is None else _ids(path, label, line, blocked.file)
    return Rule(checked.name, line, checked.description, column=blocked.column, ids=ids)


def _ids(path: Path, label: str, line: int, name: str) -> tuple[str, ...]:
    file = path.parent / name
    try:
        if not file.resolve().is_relative_to(path.parent.resolve()):
            raise UsageError(
                f"{path.name}, line {line}, rule {label!r}: the block list {name} is not below {path.parent}, "
                "where the rules are; put it there"
            )
        lines = (text.strip() for text in file.read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError, as text that is not UTF-8 is
        raise UsageError(
            f"{path.name}, line {line}, rule {label!r}: the block list {file} can't be read: {error}"
        ) from None
    ids = tuple(dict.fromkeys(text for text in lines if text and not text.startswith("#")))
    if not ids:
        raise UsageError(f"{path.name}, line {line}, rule {label!r}: the block list {file} holds no id")
    return ids
