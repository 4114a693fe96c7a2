"""The rules file: what a rule is, and how it is read.

A rule has a name and either a Spark SQL predicate (`when`) or a list of blocked ids (`blocked`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import urlsplit

from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from fraud_filter.modes import MODES
from fraud_filter.rules.document import FEATURES, RULES, Blocked, Listed, parse_entry, read_document, repeated_keys
from fraud_filter.rules.features import Feature, fields_of, least_half_ms, parse_feature
from fraud_filter.rules.language import LanguageError, names_of, read_predicate
from fraud_filter.schema import SCORE, Field, PaymentSchema
from fraud_filter.text.ddl import WHOLE
from fraud_filter.text.nearest import did_you_mean

#: An integer as Spark writes it.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
#: What a rule looks at: the payment alone, or what its key did before as well, or the model's score.
Family = Literal["rules", "velocity", "model"]
FAMILIES: tuple[Family, ...] = get_args(Family)


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
        score = (Field(SCORE, "DOUBLE", required=False),) if self.model else ()
        return PaymentSchema((*schema.fields, *fields_of(self.features), *score))

    def knowing(self, model_inputs: tuple[str, ...], model_version: str) -> RuleSet:
        """The same, with what the model takes, and what it is."""
        return replace(self, model_inputs=model_inputs, model_version=model_version)

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

    def family(self, rule: Rule) -> Family:
        """What a rule looks at."""
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
        UsageError: the file can't be read or is not YAML; or rules are refused, a line for each reason.
    """
    rules, refused = read_rules(path, schema)
    if refused:
        raise UsageError("\n".join(refused))
    return rules


def read_rules(path: Path, schema: PaymentSchema) -> tuple[RuleSet, list[str]]:
    """The rules of a file that are right as far as that can be told without Spark, and a line for each reason against
    the others: unknown or missing keys, wrong types, a name or a key twice, a block list on an unknown column or that
    can't be read, a predicate that Spark surely refuses, features of several keys.

    Raises:
        UsageError: the file can't be read, is not YAML, or holds no list of rules.
    """
    document, model = read_document(path)
    model = model and _place(path, model)
    features, refused = _features(path, document[FEATURES], schema)
    refused += _reserved(path, schema, features) if model else []
    # A rule may be right but for a feature that is not: it is told of the latter alone.
    columns = None if refused else RuleSet(path, (), features, model).columns(schema)
    rules: list[Rule] = []
    names: dict[str, int] = {}
    for one in document[RULES]:
        rule, flaws = _rule(path, one, schema, columns)
        flaws += _taken(one, names, "rule")
        refused += [_refusal(path, one.line, f"rule {one.label!r}", flaw) for flaw in flaws]
        if rule and not flaws:
            rules.append(rule)
    return RuleSet(path, tuple(rules), features, model), refused


def _place(path: Path, model: str) -> str:
    """Where the model is: a path that is not absolute begins beside the rules."""
    return model if urlsplit(model).scheme else str(path.parent.absolute() / model)


def _reserved(path: Path, schema: PaymentSchema, features: tuple[Feature, ...]) -> list[str]:
    taken = [field.name for field in (*schema.fields, *fields_of(features)) if field.name.lower() == SCORE]
    return [
        f"{path.name}: with a model {name!r} is its score; give the field or feature another name" for name in taken
    ]


def _features(path: Path, listed: list[Listed], schema: PaymentSchema) -> tuple[tuple[Feature, ...], list[str]]:
    """The features that are right, and a line for each reason against the others."""
    features: list[Feature] = []
    refused: list[str] = []
    names: dict[str, int] = {}
    for one in listed:
        feature, flaws = parse_feature(one.given, one.line, schema)
        flaws = repeated_keys(one.node) + flaws + _taken(one, names, "feature")
        if feature and features and feature.per != features[0].per:
            flaws.append(
                f"per: {feature.per!r} is another key than {features[0].per!r} of the feature on line "
                f"{features[0].line}; all features are of one key"
            )
        if feature and features and (feature.by, feature.late_ms) != (features[0].by, features[0].late_ms):
            flaws.append(
                f"by: another time than that of the feature on line {features[0].line}; all features go by one time, "
                "with the same `by:` and `late:`, or by the append time"
            )
        refused += [_refusal(path, one.line, f"feature {one.label!r}", flaw) for flaw in flaws]
        if feature and not flaws:
            features.append(feature)
    least_ms = least_half_ms(max((feature.over_ms for feature in features), default=0))
    refused += [
        _refusal(
            path, one.line, f"feature {one.name!r}",
            f"decay: too short beside the longest window of the file, which takes {least_ms / 1000:g} seconds and more",
        )
        for one in features
        if 0 < one.half_ms < least_ms
    ]  # fmt: skip
    return tuple(features), refused


def _taken(one: Listed, names: dict[str, int], what: str) -> list[str]:
    """Whether the name was given before; a feature's name is a column's, where case does not count."""
    name = one.label if what == "rule" else one.label.lower()
    first = names.setdefault(name, one.line)
    if first == one.line:
        return []
    return [f"the name is taken by the {what} on line {first}; give it another"]


def _refusal(path: Path, line: int, what: str, reason: str) -> str:
    return f"{path.name}, line {line}, {what}: {reason}"


def _rule(
    path: Path, one: Listed, schema: PaymentSchema, columns: PaymentSchema | None
) -> tuple[Rule | None, list[str]]:
    """The rule, and all that is wrong with it; `columns` is what a predicate may name, None where that is not known."""
    entry, flaws = parse_entry(one.given)
    flaws = repeated_keys(one.node) + flaws
    if entry is None:
        return None, flaws
    if entry.when is not None:
        return Rule(entry.name, one.line, entry.description, when=entry.when), flaws + _flaws(entry.when, columns)
    assert entry.blocked  # noqa: S101 - an entry has one of the two
    names = [field.name for field in schema.fields]
    column, ids = entry.blocked.column, tuple(entry.blocked.ids)
    if column not in names:
        flaws.append(f"unknown column {column!r}{did_you_mean(column, names)}; a record has {', '.join(sorted(names))}")
    try:
        ids = ids or _ids(path, entry.blocked)
    except ValueError as error:
        flaws.append(str(error))
    flaws += [flaw for field in schema.fields if field.name == column and (flaw := _never_equal(field, ids))]
    return Rule(entry.name, one.line, entry.description, column=column, ids=ids), flaws


def _flaws(when: str, columns: PaymentSchema | None) -> list[str]:
    try:
        if columns:
            read_predicate(when, columns)
    except LanguageError as error:
        return [str(error)]
    return []


def _never_equal(field: Field, ids: tuple[str, ...]) -> str:
    """Why the field is never equal to one of the ids; they are compared as texts, a number in its usual form."""
    if field.type == "STRING":
        return ""
    if field.type not in WHOLE:
        return f"{field.name!r} is a {field.type}; a block list needs a STRING, {', '.join(WHOLE)}"
    most = 2 ** (WHOLE[field.type] - 1)
    for text in ids:
        if not _INTEGER.fullmatch(text) or not -most <= int(text) < most:
            return f"{field.name!r} is a {field.type} and never equal to the id {text!r}"
    return ""


def _ids(path: Path, blocked: Blocked) -> tuple[str, ...]:
    """The ids of a block list's file; a ValueError says why there are none."""
    name = blocked.file or ""
    file = path.parent / name
    try:
        inside = file.resolve().is_relative_to(path.parent.resolve())
        text = file.read_text(encoding="utf-8-sig") if inside else ""
    except (OSError, ValueError, RuntimeError) as error:  # a zero byte in the name, text that is not UTF-8, a loop
        raise ValueError(f"the block list {file} can't be read: {error}; name a text file beside the rules") from None
    if not inside:
        raise ValueError(f"the block list {name} is not below {path.parent}, where the rules are; put it there")
    lines = (line.strip() for line in text.split("\n"))  # an id may hold what `splitlines` takes for a line's end
    ids = tuple(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
    if not ids:
        raise ValueError(f"the block list {file} holds no id; give at least one, one a line")
    return ids
