"""The rules file: what a rule is, and how it is read.

A rule has a name and either a Spark SQL predicate (`when`) or a list of blocked ids (`blocked`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, InstanceOf, model_validator

from fraud_filter.config import Settings, refused
from fraud_filter.errors import UsageError
from fraud_filter.modes import MODES
from fraud_filter.rules.features import Feature, FeatureEntry, fields_of, least_half_ms, parse_feature
from fraud_filter.rules.language import names_of, read_predicate
from fraud_filter.schema import SCORE, PaymentSchema
from fraud_filter.schema import Field as PaymentField
from fraud_filter.text.ddl import WHOLE
from fraud_filter.text.yaml_text import Entry, flaws_of, read_yaml

#: In no id of a text file: it has columns, or is UTF-16.
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
#: An integer as Spark writes it.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_Model = TypeVar("_Model", bound=BaseModel)
_Made = TypeVar("_Made")


class _Document(BaseModel):
    """The file; values are texts as they are written."""

    model_config = ConfigDict(extra="forbid")
    rules: Annotated[list[InstanceOf[Entry]], Field(min_length=1)]
    features: list[InstanceOf[Entry]] = []
    model: Annotated[str, Field(min_length=1)] | None = None


class _Blocked(BaseModel):
    """A block list: the ids, or the file that holds them."""

    model_config = ConfigDict(extra="forbid")
    column: str
    ids: list[Annotated[str, Field(min_length=1)]] = []
    file: str | None = None

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if bool(self.ids) == (self.file is not None):
            raise ValueError("give the blocked ids either as `ids: [...]` or as `file: NAME`")
        return self


class _RuleEntry(BaseModel):
    """A rule as it stands in the file."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
    description: str = ""
    when: str | None = None
    blocked: _Blocked | None = None

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.when is None) == (self.blocked is None):
            raise ValueError("a rule has either `when:` (a predicate) or `blocked:` (a list of ids)")
        return self


@dataclass(frozen=True)
class Rule:
    """One rule. Exactly one of `when` (a Spark SQL predicate) and `column` with `ids` (a block list) is set.

    `line` is the line of the rules file on which the rule begins, counted from 1.
    """

    name: str
    line: int = 0
    when: str | None = None
    column: str | None = None
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class RuleSet:
    """The rules of one file, in its order, the features that they may use, all of one key, and where their model is.

    `model_inputs` are the columns that the model takes, and `model_version` tells its content, where that is known.
    """

    path: Path
    rules: tuple[Rule, ...]
    features: tuple[Feature, ...] = ()
    model: str | None = None
    model_inputs: tuple[str, ...] = ()
    model_version: str = ""

    def refuse(self, rule: Rule, reason: str) -> UsageError:
        """The error that refuses `rule`: names the file, its line, the rule and the reason."""
        return UsageError(_refusal(self.path, rule.line, f"rule {rule.name!r}", reason))

    def columns(self, schema: PaymentSchema) -> PaymentSchema:
        """What a predicate may name: the fields of a payment, then the features, then the score."""
        score = (PaymentField(SCORE, "DOUBLE", required=False),) if self.model else ()
        return PaymentSchema((*schema.fields, *fields_of(self.features), *score))

    def uses_score(self, rule: Rule) -> bool:
        """Whether a predicate names the model's score."""
        return self.model is not None and rule.when is not None and SCORE in names_of(rule.when)

    def uses_features(self, rule: Rule) -> bool:
        """Whether a predicate needs a feature: it names one, or the score of a model that takes one."""
        names = names_of(rule.when) if rule.when else frozenset()
        return any(feature.name.lower() in names for feature in self.features) or (
            self.uses_score(rule) and self._model_uses_features
        )

    @property
    def _model_uses_features(self) -> bool:
        return not {feature.name for feature in self.features}.isdisjoint(self.model_inputs)

    def family(self, rule: Rule) -> str:
        """What a rule looks at: the payment alone ("rules"), what its key did before as well ("velocity"), or the score
        ("model").
        """
        if self.uses_score(rule):
            return "model"
        return "velocity" if self.uses_features(rule) else "rules"

    def for_mode(self, settings: Settings) -> RuleSet:
        """The rules that `settings.mode` runs: those with features are left out where it can't run them, if so set."""
        skips = settings.features_unsupported == "skip" and MODES[settings.mode].lacks_features
        return self.without_features() if skips else self

    def without_features(self) -> RuleSet:
        """The rules that need no features, and the model, where it needs none either."""
        model = None if self._model_uses_features else self.model
        rules = tuple(rule for rule in self.rules if not self.uses_features(rule))
        return replace(self, rules=rules, features=(), model=model)

    def without_model(self) -> RuleSet:
        """The rules that need no score."""
        return replace(self, rules=tuple(rule for rule in self.rules if not self.uses_score(rule)), model=None)


def load_rules(path: Path, schema: PaymentSchema) -> RuleSet:
    """Reads and checks a rules file as far as that needs no Spark.

    Raises:
        UsageError: the file can't be read or is not YAML; or rules are refused, a line for each.
    """
    rules, refused = read_rules(path, schema)
    if refused:
        raise UsageError("\n".join(refused))
    return rules


def read_rules(path: Path, schema: PaymentSchema) -> tuple[RuleSet, list[str]]:
    """The rules of a file that are right, and a line for each reason against the others: unknown or missing keys, wrong
    types, a name twice, a block list on an unknown column or that can't be read, a predicate that is none, features of
    several keys.

    Raises:
        UsageError: the file can't be read, is not YAML, or holds no list of rules.
    """
    try:
        document = read_yaml(path, _Document)
    except ValueError as error:
        raise refused("rules", path, str(error)) from None
    model = document.model and _place(path, document.model)
    features, flaws = _read_each(
        path, "feature", document.features, FeatureEntry, partial(parse_feature, schema=schema)
    )
    flaws += _misfits(path, features)
    if model:
        taken = [field.name for field in (*schema.fields, *fields_of(features)) if field.name.lower() == SCORE]
        flaws += [f"{path.name}: with a model {name!r} is its score; give it another name" for name in taken]
    # A rule may be right but for a feature that is not: it is told of the latter alone.
    columns = None if flaws else RuleSet(path, (), tuple(features), model).columns(schema)
    rules, others = _read_each(
        path, "rule", document.rules, _RuleEntry, partial(_rule, path=path, schema=schema, columns=columns)
    )
    return RuleSet(path, tuple(rules), tuple(features), model), flaws + others


def _place(path: Path, model: str) -> str:
    """Where the model is: a path that is not absolute begins beside the rules."""
    return model if urlsplit(model).scheme else str(path.parent.absolute() / model)


def _read_each(
    path: Path, what: str, entries: Iterable[Entry], model: type[_Model], make: Callable[[_Model, int], _Made]
) -> tuple[list[_Made], list[str]]:
    """What `make` makes of entries and their lines, and a line for each reason against the others."""
    made: list[_Made] = []
    refused: list[str] = []
    lines: dict[str, int] = {}
    for entry in entries:
        name = str(entry.get("name", "without a name"))
        key = name if what == "rule" else name.lower()  # a feature's is a column's, where case does not count
        try:
            if "name" in entry and key in lines:
                raise ValueError(f"the name is taken by the {what} on line {lines[key]}; give it another")
            lines[key] = entry.line
            made.append(make(model.model_validate(entry), entry.line))
        except ValueError as error:
            refused += [_refusal(path, entry.line, f"{what} {name!r}", flaw) for flaw in flaws_of(error, model)]
    return made, refused


def _misfits(path: Path, features: list[Feature]) -> list[str]:
    """Why features do not go with the first one, or with the longest window: a line for each reason."""
    longest_ms = max((feature.over_ms for feature in features), default=0)
    refused: list[str] = []
    for one in features:
        first, least_ms, flaw = features[0], least_half_ms(longest_ms), ""
        if one.per != first.per:
            flaw = f"per: {one.per!r} is another key than {first.per!r} on line {first.line}; all take the same"
        elif (one.by, one.late_ms) != (first.by, first.late_ms):
            flaw = f"by: another time than on line {first.line}; all have the same `by:` and `late:`, or none"
        elif 0 < one.half_ms < least_ms:
            flaw = f"decay: too short beside the longest window, which takes {least_ms / 1000:g} seconds and more"
        refused += [_refusal(path, one.line, f"feature {one.name!r}", flaw)] if flaw else []
    return refused


def _refusal(path: Path, line: int, what: str, reason: str) -> str:
    return f"{path.name}, line {line}, {what}: {reason}"


def _rule(entry: _RuleEntry, line: int, path: Path, schema: PaymentSchema, columns: PaymentSchema | None) -> Rule:
    """The rule of an entry; `columns` is what a predicate may name, None where that is not known.

    Raises:
        ValueError: what is wrong with it.
    """
    if entry.blocked is None:
        if columns:
            read_predicate(str(entry.when), columns)
        return Rule(entry.name, line, when=entry.when)
    field = schema.field(entry.blocked.column)
    ids = tuple(entry.blocked.ids) or _ids(path, entry.blocked)
    _check_ids(field, ids)
    return Rule(entry.name, line, column=field.name, ids=ids)


def _check_ids(field: PaymentField, ids: tuple[str, ...]) -> None:
    """A ValueError says why the field is never equal to one of the ids; they are compared as texts, a number in its
    usual form.
    """
    if field.type == "STRING":
        return
    if field.type not in WHOLE:
        raise ValueError(f"{field.name!r} is a {field.type}; a block list needs a STRING, {', '.join(WHOLE)}")
    most = 2 ** (WHOLE[field.type] - 1)
    for text in ids:
        if not _INTEGER.fullmatch(text) or not -most <= int(text) < most:
            raise ValueError(f"{field.name!r} is a {field.type} and never equal to the id {text!r}")


def _ids(path: Path, blocked: _Blocked) -> tuple[str, ...]:
    """The ids of a block list's file; a ValueError says why there are none."""
    name = blocked.file or ""
    file = path.parent / name
    try:
        inside = file.resolve().is_relative_to(path.parent.resolve())
        if inside and not file.is_file():
            raise OSError("there is no such file")  # a pipe would hold the check
        text = file.read_text(encoding="utf-8-sig") if inside else ""
    except (OSError, ValueError, RuntimeError) as error:  # a zero byte in the name, text that is not UTF-8, a loop
        raise ValueError(f"the block list {file} can't be read: {error}; name a text file beside the rules") from None
    if not inside:
        raise ValueError(f"the block list {name} is not below {path.parent}, where the rules are; put it there")
    # An id may hold what `splitlines` takes for a line's end. Files that were joined have a mark in front of each part.
    lines = (line.strip().removeprefix("\ufeff").strip() for line in text.split("\n"))
    ids = tuple(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
    for text in filter(_CONTROL.search, ids):
        raise ValueError(f"the block list {file} has {text[:80]!r}; save it as UTF-8, with one id a line and no tabs")
    if not ids:
        raise ValueError(f"the block list {file} holds no id; give at least one, one a line")
    return ids
