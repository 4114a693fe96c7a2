"""What can be told of a predicate without Spark: size, open quotations and brackets, unknown names, a wrong type.

Only what Spark, or `rule_check`, surely refuses as well is refused here, and all the rest is left to them: Spark's SQL
is larger than what sqlglot knows of it. `tests/embedded/test_rule_syntax_spark.py` compares the two.
"""

from __future__ import annotations

import re
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from fraud_filter.schema import PaymentSchema
from fraud_filter.text.nearest import did_you_mean

#: Longer predicates, or deeper ones, are no sentences that anybody wrote; Spark's parser reads each level with a few
#: frames of the thread's stack.
_MOST_CHARACTERS = 10_000
_MOST_LEVELS = 100

#: Texts in quotation marks, as Spark's lexer takes them (SqlBaseLexer.g4).
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`""", re.DOTALL)
#: Raw texts, comments and variables: what a quotation mark or bracket means there is not decided here.
_UNDECIDED = re.compile(r"""[rR]['"]|--|/\*|\$""")
_WORD = re.compile(r"\w+")
_PAIRS = {")": "(", "]": "["}

#: Parts that Spark and sqlglot read alike, with all names in them being columns.
_PLAIN = (
    *(exp.And, exp.Or, exp.Not, exp.Paren, exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Is),
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Between, exp.In),
    *(exp.Like, exp.ILike, exp.RegexpLike, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg),
    *(exp.Upper, exp.Lower, exp.Length, exp.Abs, exp.Trim, exp.StartsWith, exp.EndsWith, exp.Contains),
    *(exp.Hour, exp.Minute, exp.Second, exp.Day, exp.Month, exp.Year, exp.TsOrDsToDate),
)
_NUMBERS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg)
#: Spark calls these functions without brackets; `rule_check` has the words for them.
_CALLS = re.compile(r"(current|local|session)_?\w+|user|now", re.IGNORECASE)


def names_of(when: str) -> frozenset[str]:
    """All words outside of texts, in lower case: names of columns and functions among them."""
    if _UNDECIDED.search(when):
        return frozenset(word.lower() for word in _WORD.findall(when))
    bare = _QUOTED.sub(lambda text: f" {text[0][1:-1]} " if text[0][0] == "`" else " ", when)
    return frozenset(word.lower() for word in _WORD.findall(bare))


def size_flaw(when: str) -> str | None:
    """Why a predicate is too long or too deep, or None."""
    if len(when) > _MOST_CHARACTERS:
        return f"it has {len(when):,} characters; {_MOST_CHARACTERS:,} are allowed: make it several rules"
    if max(when.count(opening) for opening in "([-~!") > _MOST_LEVELS:
        return f"it has more than {_MOST_LEVELS} brackets or signs of a kind: make it several rules"
    return None


def find_flaw(when: str, schema: PaymentSchema) -> str | None:
    """Why a predicate is surely refused, with line and column inside it; None where only Spark can tell."""
    if not when.strip():
        return "when: is empty; give a predicate such as `amount > 100`"
    return size_flaw(when) or _pair_flaw(when) or _name_flaw(when, schema)


def _pair_flaw(when: str) -> str | None:
    if _UNDECIDED.search(when):
        return None
    bare = _QUOTED.sub(lambda text: " " * len(text[0]), when)
    opened: list[int] = []
    for at, letter in enumerate(bare):
        if letter in "'\"`":
            return f"{place(when, at)}: the quotation that begins with {letter} has no end; close it"
        if letter in "([":
            opened.append(at)
        elif letter in _PAIRS:
            if not opened or bare[opened[-1]] != _PAIRS[letter]:
                return f"{place(when, at)}: this {letter} closes no {_PAIRS[letter]}; take it away or open one"
            opened.pop()
    return f"{place(when, opened[-1])}: this {bare[opened[-1]]} is not closed; close it" if opened else None


def _name_flaw(when: str, schema: PaymentSchema) -> str | None:
    """Of a name that no field has, or of a whole that is neither true nor false."""
    if _UNDECIDED.search(when) or not when.isascii():
        return None
    try:
        parsed: Any = sqlglot.parse_one(when, dialect="spark")
    except (SqlglotError, RecursionError):
        return None
    if not all(isinstance(node, _PLAIN) for node in parsed.walk()):
        return None
    types = {field.name.lower(): field.type for field in schema.fields}
    columns = list(parsed.find_all(exp.Column, bfs=False))
    if any(column.table or _CALLS.fullmatch(column.name) for column in columns):
        return None
    for column in columns:
        if column.name.lower() not in types:
            names = [field.name for field in schema.fields]
            told = f"unknown column {column.name!r}{did_you_mean(column.name, names)}; there are {', '.join(names)}"
            return f"{place(when, column.this.meta['start'])}: {told}"
    kind = _other_type(parsed.unnest(), types)
    return kind and f"{when!r} is {kind}; a predicate is true or false, such as `amount > 100`"


def _other_type(whole: exp.Expression, types: dict[str, str]) -> str | None:
    """What the whole is, where it is surely no truth value."""
    if isinstance(whole, exp.Literal):
        return "a text" if whole.is_string else "a number"
    if isinstance(whole, _NUMBERS):
        return "a number"
    kind = types[whole.name.lower()] if isinstance(whole, exp.Column) else "BOOLEAN"
    return None if kind == "BOOLEAN" else f"of type {kind.lower()}"


def place(when: str, at: int) -> str:
    """Where the character `at`, counted from 0, of a predicate stands."""
    line = when.count("\n", 0, at) + 1
    return f"line {line}, column {at - when.rfind(chr(10), 0, at)} of {when!r}"
