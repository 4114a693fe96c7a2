"""Reads a predicate: a sentence of Spark SQL, as far as Spark and the audit understand it alike by construction.

What is read becomes a tree whose parts have types. From it both sides evaluate: Spark a text in which brackets and
conversions stand wherever something could be understood in two ways, the audit the tree itself (`oracle.predicates`).

A rule knows few types. Whole numbers are BIGINT to it, a FLOAT is a DOUBLE; a DATE, or a TIMESTAMP_NTZ, is the
TIMESTAMP in UTC of its midnight, or of its moment. Decimals are exact, or refused. Null is what a record has not.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

from lark import Lark, Token, Tree, UnexpectedInput, UnexpectedToken

from fraud_filter.rules.patterns import UnplacedError, read_like, read_regex
from fraud_filter.rules.words import CAPITALS, EXISTS, FUNCTIONS, OTHERWISE, REFUSED, SMALL
from fraud_filter.schema import PaymentSchema, time_us
from fraud_filter.text.ddl import MOST_DIGITS, SCALARS, WHOLE, parse_type, place_in
from fraud_filter.text.nearest import did_you_mean

#: In the order in which Spark's signs bind.
_GRAMMAR = r"""
?start: either
?either: both | both (_OR both)+ -> either
?both: negated | negated (_AND negated)+ -> both
?negated: predicate | NOT negated -> negation
?predicate: compared
    | compared _IS [NOT] NULL -> is_null
    | compared [NOT] _BETWEEN compared _AND compared -> between
    | compared [NOT] _IN "(" either ("," either)* ")" -> within
    | compared [NOT] (LIKE | RLIKE) TEXT -> like
?compared: sum | compared COMPARISON sum -> comparison
?sum: product | sum (PLUS | MINUS) product -> arithmetic
?product: unary | product TIMES unary -> arithmetic
?unary: primary | MINUS unary -> minus
?primary: base | primary "." NAME -> field | primary "[" (NUMBER | TEXT) "]" -> element
?base: "(" either ")"
    | NUMBER -> number
    | TEXT -> text
    | (NULL | TRUE | FALSE) -> constant
    | NAME -> column
    | TIME TEXT -> time
    | NAME "(" [either ("," either)*] ")" -> call
    | NAME "(" either "," NAME "->" either ")" -> quantified
    | _CASE [either] (_WHEN either _THEN either)+ [_ELSE either] _END -> case
    | _CAST "(" either _AS NAME ["(" NUMBER ["," NUMBER] ")"] ")" -> cast

_CAST.2: /cast(?=\s*\()/i
TIME.2: /(date|timestamp)(?=\s*['"])/i
COMPARISON: /<=>|<>|!=|==|<=|>=|=|<(?!<)|>(?!>)/
PLUS: "+"
MINUS: /-(?![->])/
TIMES: /[*%]|\/(?!\*)/
NUMBER: /([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(e[+-]?[0-9]+)?d?(?!\w)/i
TEXT: /'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"/s
NAME: /[a-z_][a-z_0-9]*|`[^`]+`/i
%ignore /\s+/
"""
#: Keywords, by the names that the grammar has for them; those that begin with _ are no part of what is read.
_KEYWORDS = "_OR _AND NOT _IS NULL TRUE FALSE _BETWEEN _IN LIKE RLIKE _CASE _WHEN _THEN _ELSE _END _AS"

#: Longer predicates, or deeper ones, are no sentences that anybody wrote.
_MOST_CHARACTERS, _MOST_LEVELS = 10_000, 100
_TOO_DEEP = f"it has more than {_MOST_LEVELS} levels: make it several rules"
#: Bytes of a text in a rule.
_LONGEST_TEXT = 1000
#: Looks at each character of a record, all parts of a rule together. One takes up to 3 ns (measured over texts that
#: match as far as they can): less than 10 ms for 64 KiB.
_MOST_LOOKS = 50
#: A part of a text up to this length is as good as none.
_SHORT = 200
#: What a part of exists(…) costs: it is evaluated for each element, which may be two characters.
_ELEMENT_LOOKS = 2

#: The types that a rule knows, in which it reads what a record has.
_READ_AS = {
    **dict.fromkeys(WHOLE, "BIGINT"), "FLOAT": "DOUBLE", **dict.fromkeys(("DATE", "TIMESTAMP_NTZ"), "TIMESTAMP"),
}  # fmt: skip
#: Digits of a DECIMAL that can hold any BIGINT.
_WHOLE_DIGITS = 19
_NESTED = ("ARRAY", "MAP", "STRUCT")
_NUMBERS = ("BIGINT", "DECIMAL", "DOUBLE")
#: What kinds of values are called in a sentence.
_CALLED = {
    "BOOLEAN": "a condition", "STRING": "a text", "TIMESTAMP": "a time", **dict.fromkeys(_NUMBERS, "a number"),
    "ARRAY": "an array", "MAP": "a map", "STRUCT": "a struct",
}  # fmt: skip
#: What may be made of what by a CAST.
_CASTS = {
    "BIGINT": (*_NUMBERS, "BOOLEAN"), "DOUBLE": _NUMBERS, "DECIMAL": ("BIGINT", "DECIMAL"),
    "STRING": ("BIGINT", "STRING"),
}  # fmt: skip
#: Kinds of operands, by their names in `rules.words`: the types, and what stands in the rule.
_ALLOWED = {"number": _NUMBERS, "nested": ("ARRAY", "MAP"), "fraction": ("DOUBLE",)}
_IN_THE_RULE = {"count": ("BIGINT", "a whole number"), "literal": ("STRING", "a text")}
#: Spark counts characters and elements up to here.
_MOST_COUNTED = 2**31 - 1
_NAME = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|(\w+)""", re.DOTALL)
_WORD = re.compile(r"\w+|\|\||->>|->|::|--|/\*|<<|>>|\S")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "%": "\\%", "_": "\\_"}
_EPOCH = datetime.datetime(1970, 1, 1)


class LanguageError(ValueError):
    """Why a predicate is no sentence of the language; the message begins with the place."""


@dataclass(frozen=True)
class Node:
    """A part of a predicate: what it does, the type of its value, and how Spark writes it.

    `value` is that of a literal, a column's name, or a pattern. `size`: the text that it is has at most so many times
    the characters of a record. `looks`: how often it looks at each of these.
    """

    word: str
    type: str
    spark: str
    parts: tuple[Node, ...] = ()
    value: Any = None
    size: int = 0
    looks: int = 0
    depth: int = 1

    @property
    def kind(self) -> str:
        """Its type without digits."""
        return re.split("[(<]", self.type)[0]

    def is_literal(self, *kinds: str) -> bool:
        """Whether it stands in the rule as it is, as a value of one of the kinds."""
        return self.word == "literal" and self.kind in kinds


def read_predicate(when: str, schema: PaymentSchema) -> Node:
    """The tree of a predicate over the columns of the schema.

    Raises:
        LanguageError: it is none.
    """
    if not when.strip():
        raise LanguageError("when: is empty; give a predicate such as `amount > 100`")
    if len(when) > _MOST_CHARACTERS:
        raise LanguageError(f"it has more than {_MOST_CHARACTERS:,} characters: make it several rules")
    try:
        return _Reader(when, schema).whole(_parser().parse(when))
    except RecursionError:
        raise LanguageError(_TOO_DEEP) from None
    except UnexpectedInput as error:
        is_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
        at = len(when) if is_end else int(error.pos_in_stream or 0)
        raise LanguageError(f"{place_in(when, at)} of {when!r}: {_unexpected(when, at)}") from None


def names_of(when: str) -> frozenset[str]:
    """All words outside of texts, in lower case: names of columns and functions among them."""
    return frozenset(word.lower() for word in _NAME.findall(when) if word)


def digits(kind: str) -> tuple[int, int]:
    """Precision and scale of a DECIMAL."""
    parsed = parse_type(kind)
    return parsed.precision, parsed.scale


@functools.cache
def _parser() -> Lark:
    keywords = (rf"{name}.2: /{name.strip('_')}\b/i" for name in _KEYWORDS.split())
    return Lark("\n".join((_GRAMMAR, *keywords)), parser="lalr", propagate_positions=True)


def _unexpected(when: str, at: int) -> str:
    """Why the grammar takes no word there: that word may be the one before it."""
    word = (_WORD.match(when, at) or [""])[0]
    before = (_WORD.findall(when[:at]) or [""])[-1]
    for one in (word, before):
        if before.lower() in ("like", "rlike") and word.lower() not in REFUSED:
            return f"a text that stands in the rule must follow {before}, such as '^a'"
        if one.lower() in REFUSED:
            return str(_refused(one))
    if word and word in "'\"`":
        return f"the quotation that begins with {word} has no end; close it"
    return f"{word!r} may not stand here" if word else "something is missing at the end"


class _Reader:
    """Makes a node of each rule of the grammar; the methods have the names that these give."""

    def __init__(self, when: str, schema: PaymentSchema) -> None:
        self._when = when
        self._columns = {field.name.lower(): field for field in schema.fields}
        self._elements: dict[str, Node] = {}

    def whole(self, tree: Any) -> Node:
        """The node of a predicate."""
        node: Node = self._visit(tree)
        if node.kind != "BOOLEAN":
            told = f"is of type {node.type.lower()}; a predicate is true or false, such as `amount > 100`"
            raise LanguageError(f"{self._when!r} {told}")
        if node.looks > _MOST_LOOKS:
            raise LanguageError(
                f"{self._when!r} looks up to {node.looks:,} times at each character of a record; {_MOST_LOOKS} are "
                f"allowed: take left(…, {_SHORT}) of the texts within it, or make it several rules"
            )
        return node

    def _visit(self, tree: Any) -> Any:
        """The node of a tree; an error tells where its innermost part stands."""
        if not isinstance(tree, Tree):
            return tree
        if tree.data == "quantified":
            word, array, name, body = tree.children
            parts = [word, self._visit(array), name, partial(self._visit, body)]
        else:
            parts = list(map(self._visit, tree.children))
        try:
            return getattr(self, tree.data)(*parts)
        except UnplacedError as error:
            where = f"{place_in(self._when, tree.meta.start_pos)} of {self._when!r}"
            raise LanguageError(f"{where}: {error}") from None

    # -- conditions

    def either(self, *parts: Node) -> Node:
        return _joined("OR", parts)

    def both(self, *parts: Node) -> Node:
        return _joined("AND", parts)

    def negation(self, _not: Token, one: Node) -> Node:
        return _unless(True, _operand(one, "BOOLEAN", "NOT"))

    def is_null(self, left: Node, is_not: Token | None, _null: Token) -> Node:
        return _unless(is_not, _node("is null", "BOOLEAN", f"{left.spark} IS NULL", [left]))

    def between(self, left: Node, is_not: Token | None, low: Node, high: Node) -> Node:
        return _unless(is_not, _joined("AND", [_compared(">=", left, low), _compared("<=", left, high)]))

    def within(self, left: Node, is_not: Token | None, *listed: Node) -> Node:
        first, *others = parts = _alike([left, *listed])
        # A long list is a hash set to Spark, for which -0.0 is another than 0.0.
        spark = f"({first.spark} + 0D)" if first.type == "DOUBLE" else first.spark
        spark += f" IN ({', '.join(part.spark for part in others)})"
        return _unless(is_not, _node("in", "BOOLEAN", spark, parts, 1))

    def like(self, left: Node, is_not: Token | None, word: Token, text: Token) -> Node:
        left, pattern = _operand(left, "STRING", word), _unescaped(text)
        try:
            if word.type == "LIKE":
                spark, found, looks = pattern, read_like(pattern), 2
            else:
                found, looks = read_regex(pattern)
                spark = found
        except UnplacedError as error:
            raise UnplacedError(f"the pattern {pattern!r} {error}") from None
        spark = f"{left.spark} {word.type} {_quoted(spark)}"
        return _unless(is_not, _node(word.type.lower(), "BOOLEAN", spark, [left], looks, value=found))

    def comparison(self, left: Node, sign: Token, right: Node) -> Node:
        return _compared({"==": "=", "!=": "<>"}.get(sign, str(sign)), left, right)

    def case(self, given: Node | None, *parts: Node) -> Node:
        """CASE WHEN … ELSE: a value more than there are conditions where there is an ELSE."""
        *pairs, last = parts
        whens = [_compared("=", given, one) if given else _operand(one, "BOOLEAN", "WHEN") for one in pairs[::2]]
        values = _alike([*pairs[1::2], *([last] if last else [])])
        cases = " ".join(f"WHEN {when.spark} THEN {then.spark}" for when, then in zip(whens, values, strict=False))
        spark = f"CASE {cases} ELSE {values[-1].spark} END" if last else f"CASE {cases} END"
        return _node("case", values[0].type, spark, (*whens, *values), size=sum(value.size for value in values))

    # -- numbers and other values

    def arithmetic(self, left: Node, sign: Token, right: Node) -> Node:
        """Of whole numbers as BIGINT, of decimals exactly, of others and of quotients as DOUBLE."""
        left, right = (_operand(one, "number", sign) for one in (left, right))
        kinds, kind = {left.kind, right.kind}, "BIGINT"
        if sign == "/" or "DOUBLE" in kinds:
            kind = "DOUBLE"
        elif "DECIMAL" in kinds:
            left, right = (_as(one, _as_decimal(one)) for one in (left, right))
            kind = _exact(sign, *digits(left.type), *digits(right.type))
        if kind in ("BIGINT", "DOUBLE"):
            left, right = _as(left, kind), _as(right, kind)
        return _node(sign, kind, f"{left.spark} {sign} {right.spark}", [left, right])

    def minus(self, sign: Token, one: Node) -> Node:
        one = _operand(one, "number", sign)
        if one.word == "literal" and one.value >= 0:
            is_least = one.value == 2**63 and one.kind == "DECIMAL"
            return _literal(-(2**63), "BIGINT") if is_least else _literal(-one.value, one.type)
        return _node("neg", one.type, f"- {one.spark}", [one])

    def number(self, token: Token) -> Node:
        text = token.upper()
        if text[-1] == "D" or "E" in text:
            value = float(text.removesuffix("D"))
            if value == float("inf"):
                raise UnplacedError(f"{text} is too large for a DOUBLE")
            return _literal(value, "DOUBLE")
        if text.isdigit() and int(text) < 2**63:
            return _literal(int(text), "BIGINT")
        before, _, after = text.partition(".")
        return _literal(Decimal(text), _decimal(len(before.lstrip("0")) + len(after), len(after)))

    def text(self, token: Token) -> Node:
        return _literal(_unescaped(token), "STRING")

    def constant(self, token: Token) -> Node:
        if token.type == "NULL":
            raise _refused(token)
        return _literal(token.type == "TRUE", "BOOLEAN")

    def time(self, kind: Token, token: Token) -> Node:
        return _written_out(_unescaped(token), kind.upper())

    def column(self, token: Token) -> Node:
        name = token.strip("`")
        if name.lower() in self._elements:
            return self._elements[name.lower()]
        field = self._columns.get(name.lower())
        if field is None:
            if name.lower() in REFUSED:
                raise _refused(name)
            names = [one.name for one in self._columns.values()]
            raise UnplacedError(f"unknown column {name!r}{did_you_mean(name, names)}; there are {', '.join(names)}")
        if self._elements and field.type in ("STRING", *_NESTED):
            told = "would be read again for each element; compare elements with numbers, or with texts in the rule"
            raise UnplacedError(f"{name!r} {told}")
        return _value("column", field.type, f"`{field.name}`", (), field.name)

    # -- nested values

    def field(self, one: Node, token: Token) -> Node:
        name = token.strip("`")
        parts = {part.lower(): (part, kind) for part, kind in parse_type(one.type).parts if one.kind == "STRUCT"}
        if name.lower() not in parts:
            known = ", ".join(part for part, _ in parts.values()) or f"it is of type {one.type}"
            raise UnplacedError(f"there is no {name!r} in {one.spark}{did_you_mean(name, parts)}: {known}")
        part, kind = parts[name.lower()]
        return _value("field", str(kind), f"{one.spark}.`{part}`", (one,), part)

    def element(self, one: Node, token: Token) -> Node:
        key = _operand(self.number(token), "count", "[") if token.type == "NUMBER" else self.text(token)
        if (one.kind, token.type) not in (("ARRAY", "NUMBER"), ("MAP", "TEXT")):
            raise UnplacedError(f"{one.spark} is {one.type}; an ARRAY takes [0], a MAP ['name']")
        ((_, kind),) = parse_type(one.type).parts
        return _value("element", str(kind), f"{one.spark}[{key.spark}]", (one,), key.value)

    def quantified(self, word: Token, array: Node, token: Token, body: Callable[[], Node]) -> Node:
        """exists(array, x -> …)."""
        if word.lower() != EXISTS:
            raise _refused(word)
        one, known, name = _operand(array, "ARRAY", word), self._elements, token.strip("`")
        ((_, kind),) = parse_type(one.type).parts
        self._elements = {**known, name.lower(): _value("variable", str(kind), f"`{name}`", (), name)}
        inner = _operand(body(), "BOOLEAN", word)
        self._elements = known
        looks = _ELEMENT_LOOKS * sum(1 for _ in parts_of(inner))
        spark = f"{EXISTS}({one.spark}, `{name}` -> {inner.spark})"
        return _node(EXISTS, "BOOLEAN", spark, [one, inner], looks, value=name)

    # -- functions

    def call(self, token: Token, *given: Node | None) -> Node:
        name, operands = token.lower(), [one for one in given if one]
        if name not in FUNCTIONS:
            raise _refused(token)
        word = FUNCTIONS[name]
        takes = list(word.takes)
        least = sum(not one.endswith("?") for one in takes)
        if takes[-1].endswith("*"):
            takes += takes[-1:] * (len(operands) - len(takes))
        if not least <= len(operands) <= len(takes):
            raise UnplacedError(f"{name!r} takes {' '.join(word.takes)}, and here are {len(operands)} operands")
        parts = [_operand(one, kind.strip("*?"), name) for one, kind in zip(operands, takes, strict=False)]
        parts = _alike(parts) if word.gives == "alike" else parts
        spark = f"{word.name}({', '.join(part.spark for part in parts)})"
        kind = parts[0].type if word.gives in ("same", "alike") else word.gives
        size = sum(part.size for part in parts) if kind == "STRING" else 0
        if word.name in ("lower", "upper"):
            pair = (CAPITALS, SMALL) if word.name == "lower" else (SMALL, CAPITALS)
            spark = f"translate({parts[0].spark}, {', '.join(map(_quoted, pair))})"
        elif "count" in takes and len(parts) == len(takes) and parts[-1].value <= _SHORT:
            size = 0
        elif word.name == "replace" and not len(parts[2].value.encode()) <= len(parts[1].value.encode()) > 0:
            raise UnplacedError("the last text of 'replace' must not be longer than the one before it")
        sought = len(parts[1].value.encode()) // 30 if "literal" in takes else 0
        node = _node(word.name, kind, spark, parts, looks=word.looks + sought, size=size)
        return _as(node, _READ_AS.get(kind, kind))

    def cast(self, one: Node, name: Token, precision: Token | None, scale: Token | None) -> Node:
        family = SCALARS.get(name.upper(), "")
        kind = _decimal(int(precision or 10), int(scale or 0)) if family == "DECIMAL" else family
        if family not in _CASTS:
            told = f"a CAST makes {', '.join(_CASTS)}; the day of a time is to_date(…)"
            raise UnplacedError(f"{str(name)!r} is no word of a rule: {told}")
        if one.kind not in _CASTS[family]:
            told = f"a rule can't make {kind} of {_CALLED.get(one.kind, one.type)}"
            raise UnplacedError(f"{told}; give the field the type that you need, in payment.ddl")
        return _as(one, kind, is_cast=True)


# -- types


def _operand(node: Node, kind: str, word: str) -> Node:
    """The node as an operand of that kind."""
    if kind == "alike":
        return node
    if kind in _IN_THE_RULE:
        type_, told = _IN_THE_RULE[kind]
        if not node.is_literal(type_) or (kind == "count" and not 0 <= node.value <= _MOST_COUNTED):
            raise UnplacedError(f"{str(word)!r} takes {told} that stands in the rule")
        return replace(node, spark=str(node.value)) if kind == "count" else node
    if kind == "DOUBLE" and node.kind in _NUMBERS:
        return _as(node, kind)
    allowed = _ALLOWED.get(kind, (kind,))
    if node.kind not in allowed:
        told = "a DOUBLE; a CAST makes one" if kind == "fraction" else _CALLED[allowed[0]]
        raise UnplacedError(f"{str(word)!r} takes {told}, and this is {_CALLED[node.kind]}")
    return node


def _compared(sign: str, left: Node, right: Node) -> Node:
    kinds = {left.kind, right.kind}
    if "TIMESTAMP" in kinds:
        left, right = (_written_out(one.value) if one.is_literal("STRING") else one for one in (left, right))
    if "DECIMAL" in kinds:
        left, right = (_as(one, _as_decimal(one)) if one.is_literal("BIGINT") else one for one in (left, right))
    left, right = _alike([left, right])
    return _node(sign, "BOOLEAN", f"{left.spark} {sign} {right.spark}", [left, right], 1)


def _exact(sign: str, p1: int, s1: int, p2: int, s2: int) -> str:
    """The type that Spark gives to the arithmetic of two decimals, where it has all digits of the result."""
    scale = s1 + s2 if sign == "*" else max(s1, s2)
    before = {"*": p1 - s1 + p2 - s2 + 1, "%": min(p1 - s1, p2 - s2)}
    return _decimal(before.get(sign, max(p1 - s1, p2 - s2) + 1) + scale, scale)


def _alike(nodes: Sequence[Node]) -> list[Node]:
    """The operands with one type for all."""
    kinds, types = {node.kind for node in nodes}, {node.type for node in nodes}
    if kinds & set(_NESTED):
        raise UnplacedError(f"a rule can't compare values of type {', '.join(kinds & set(_NESTED))}")
    if len(types) == 1:
        return list(nodes)
    if not kinds <= set(_NUMBERS):
        mixed = " and ".join(sorted({_CALLED[kind] for kind in kinds}))
        raise UnplacedError(f"this mixes {mixed}; write a CAST, so that all are of one kind")
    kind = "DOUBLE"
    if kind not in kinds:
        pairs = [digits(_as_decimal(node)) for node in nodes]
        scale = max(pair[1] for pair in pairs)
        kind = _decimal(max(pair[0] - pair[1] for pair in pairs) + scale, scale)
    return [_as(node, kind) for node in nodes]


def _decimal(precision: int, scale: int) -> str:
    if 0 <= scale <= precision <= MOST_DIGITS and precision:
        return f"DECIMAL({precision}, {scale})"
    told = f"this needs a DECIMAL({precision}, {scale}), and a DECIMAL has at most {MOST_DIGITS} digits"
    raise UnplacedError(f"{told}; CAST an operand to a DECIMAL of fewer digits, or to DOUBLE")


# -- nodes


def _joined(sign: str, parts: Sequence[Node]) -> Node:
    parts = [_operand(part, "BOOLEAN", sign) for part in parts]
    return _node(sign.lower(), "BOOLEAN", f" {sign} ".join(part.spark for part in parts), parts)


def _unless(is_not: object, node: Node) -> Node:
    return _node("not", "BOOLEAN", f"NOT {node.spark}", [node]) if is_not else node


def _node(word: str, kind: str, spark: str, parts: Sequence[Node], looks: int = 0, **more: Any) -> Node:
    looks = looks * sum(part.size for part in parts) + sum(part.looks for part in parts)
    depth = 1 + max(part.depth for part in parts)
    if depth > _MOST_LEVELS:
        raise UnplacedError(_TOO_DEEP)
    return Node(word, kind, f"({spark})", tuple(parts), looks=looks, depth=depth, **more)


def _unescaped(token: Token) -> str:
    def unescape(found: re.Match[str]) -> str:
        if found[1] and found[1] not in _ESCAPES:
            raise UnplacedError(f"a text may not hold {found[0]}; write \\{found[0]}, for Spark drops a single \\")
        return _ESCAPES[found[1]] if found[1] else found[0][0]

    text = re.sub(r"\\(.)|" + token[0] * 2, unescape, token[1:-1], flags=re.DOTALL)
    if len(text.encode()) > _LONGEST_TEXT:
        raise UnplacedError(f"a text has at most {_LONGEST_TEXT} bytes")
    return text


def _written_out(text: str, kind: str = "TIMESTAMP") -> Node:
    """A date or time that stands in the rule as a text."""
    try:
        return _literal(time_us(text, kind), "TIMESTAMP")
    except ValueError:
        example = "2026-01-31" if kind == "DATE" else "2026-01-31 12:00:00"
        raise UnplacedError(f"{text!r} is no {kind}; write the time out, as in '{example}'") from None


def _refused(word: str) -> UnplacedError:
    reason = REFUSED.get(word.lower(), OTHERWISE + did_you_mean(word.lower(), FUNCTIONS))
    return UnplacedError(f"{str(word)!r} is no word of a rule: {reason}")


def _quoted(text: str) -> str:
    """The text as a literal of Spark SQL."""
    return "'" + "".join(f"\\u{ord(one):04x}" if one < " " or one in "'\\" else one for one in text) + "'"


def _literal(value: Any, kind: str) -> Node:
    """A value that stands in the rule; of -0.0 and 0.0 it is the latter."""
    value = value + 0.0 if kind == "DOUBLE" else value
    spark = f"({value}{ {'DOUBLE': 'D', 'BIGINT': 'L'}.get(kind, '') })"
    if kind == "STRING":
        spark = _quoted(value)
    elif kind == "TIMESTAMP":
        spark = f"(TIMESTAMP '{_EPOCH + datetime.timedelta(microseconds=value)}')"
    elif kind.startswith("DECIMAL"):
        spark = f"CAST('{value}' AS {kind})"
    return Node("literal", kind, spark, value=value)


def _value(word: str, kind: str, spark: str, parts: tuple[Node, ...], value: Any) -> Node:
    """What is read from the record, with the type that it has to a rule."""
    node = Node(word, kind, spark, parts, value)
    return _as(replace(node, size=int(node.kind in ("STRING", *_NESTED))), _READ_AS.get(kind, kind))


def parts_of(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    for part in node.parts:
        yield from parts_of(part)


def _as_decimal(node: Node) -> str:
    """The type of a number as a DECIMAL; of one that stands in the rule, with as many digits as it has."""
    if node.kind == "DECIMAL":
        return node.type
    return f"DECIMAL({len(str(abs(node.value))) if node.word == 'literal' else _WHOLE_DIGITS}, 0)"


def _as(node: Node, kind: str, is_cast: bool = False) -> Node:
    """The node with another type, which can hold each of its values, but for those of a rule's own CAST."""
    if node.type == kind:
        return node
    if node.word == "literal" and not is_cast:
        return _literal(float(node.value) if kind == "DOUBLE" else Decimal(node.value), kind)
    size = node.size if kind == "STRING" else 0
    return Node("cast", kind, f"CAST({node.spark} AS {kind})", (node,), None, size, node.looks, node.depth + 1)
