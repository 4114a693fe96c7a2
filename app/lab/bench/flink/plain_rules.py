"""Rules that Flink can take over as they are: comparisons of fields with each other and literals.

The rules that ship are of this kind. Anything on which engines may differ is refused: the contenders must decide the
same, and the audit would find them out if they did not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from fraud_filter.rules.ruleset import Rule, RuleSet
from fraud_filter.schema import PaymentSchema

_PLAIN = (
    *(exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In),
    *(exp.Is, exp.Null, exp.Boolean, exp.Literal, exp.Column, exp.Identifier, exp.Hour, exp.Neg),
)
#: The type of a feature whose value is a number of any kind.
_NUMBER = "number"


@dataclass(frozen=True)
class PlainRule:
    """A rule with its predicate as sqlglot's tree (`when`), or the column and the ids of a block list."""

    name: str
    when: Any = None
    column: str = ""
    ids: frozenset[str] = frozenset()


def plain_rules(rules: RuleSet, schema: PaymentSchema) -> list[PlainRule]:
    """The rules, in the order of the file; they may name features whose values are numbers.

    Raises:
        UsageError: a rule is more than plain comparisons; names the rule and the part.
    """
    types = {field.name.lower(): field.type for field in schema.fields}
    types |= {one.name.lower(): _NUMBER for one in rules.features if one.kind not in ("min", "max")}
    return [_plain(rule, rules, types) for rule in rules.rules]


def _plain(rule: Rule, rules: RuleSet, types: Mapping[str, str]) -> PlainRule:
    if rule.when is None:
        if types[str(rule.column).lower()] != "STRING":
            raise rules.refuse(rule, "only the filter itself compares a block list with a field that is no STRING")
        return PlainRule(rule.name, column=str(rule.column), ids=frozenset(rule.ids))
    try:
        tree: Any = sqlglot.parse_one(rule.when, dialect="spark")
    except SqlglotError as error:
        raise rules.refuse(rule, f"can't be read: {str(error).splitlines()[0]}") from None
    for node in tree.walk():
        if not isinstance(node, _PLAIN):
            raise rules.refuse(rule, f"only the filter itself knows {node.sql(dialect='spark')!r}")
        if isinstance(node, exp.Column) and not _is_plain(node, types.get(node.name.lower(), "")):
            raise rules.refuse(rule, f"only the filter itself compares {node.name!r}")
    return PlainRule(rule.name, when=tree)


def _is_plain(column: exp.Column, kind: str) -> bool:
    return kind in ("STRING", "DOUBLE", _NUMBER) or (kind == "TIMESTAMP" and isinstance(column.parent, exp.Hour))
