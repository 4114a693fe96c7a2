"""Schemas and predicates drawn from the language's own list."""

from __future__ import annotations

import random
import re
from dataclasses import replace

from fraud_filter.rules.language import LanguageError, Node, read_predicate
from fraud_filter.rules.words import FUNCTIONS
from fraud_filter.schema import PaymentSchema
from hostile_records import WORDS

#: By what it is: what may be written, with a letter in braces for what is in it; `x` is of any kind.
_FORMS = {
    "b": (
        *("({b}) AND {b}", "({b} OR {b})", "NOT ({b})", "{x} IS NULL", "{x} IS NOT NULL"),
        *("({b}) IS NULL", "({b}) <=> ({b})"),
        *(f"{{{kind}}} {sign} {{{kind}}}" for kind in "snndt" for sign in ("=", "<>", "<", "<=", ">", ">=", "<=>")),
        *("{t} > '2024-03-01 12:30:45.5'", "'1969-12-31' <= {d}", "{n} BETWEEN {n} AND {n}"),
        "{s} NOT BETWEEN {s} AND {s}",
        *("exists(tags, one -> one LIKE {like} OR {b})", "exists(basket.items, I -> i.n > {n} OR i.at < {t})"),
        "exists(basket.items, i -> i.n IS NULL)",
        "exists(tags, x -> x = {literal})",
        *("{n} IN ({n}, {n})", "{s} NOT IN ({s}, {s})", "{d} IN ({d}, {d})", "{t} IN ({t}, {t})"),
        *("{n} IN (0, 1, 2, 3, 4, 5, 6, 7.5, 8, 9, 10, 11)", "{s} LIKE {like}"),
        "{s} RLIKE {regex}",
        *("{s} NOT LIKE {like}", "{s} NOT RLIKE {regex}", "CASE WHEN {b} THEN {b} END"),
    ),
    "n": (
        *("{n} + {n}", "{n} - {n}", "{n} * {n}", "{n} / {n}", "{n} % {n}", "- {n}"),
        *(f"CAST({{n}} AS {kind})" for kind in ("BIGINT", "DOUBLE", "DECIMAL(10, 3)")),
        *("CAST({b} AS BIGINT)", "CASE WHEN {b} THEN {n} WHEN {b} THEN {n} ELSE {n} END"),
        *("CASE {n} WHEN {n} THEN {n} END", "(({n}) + {n}) * {n}"),
    ),
    "s": ("CAST({n} AS STRING)", "CASE WHEN {b} THEN {s} END"),
    "d": ("to_date({t})", "CASE WHEN {b} THEN {d} ELSE {d} END", "to_date({d})"),
    "t": ("coalesce({d}, {t})", "CASE {t} WHEN {t} THEN {t} END"),
}  # fmt: skip
_KINDS = {"STRING": "s", "BOOLEAN": "b", "DATE": "d", "TIMESTAMP": "t"}
_LITERALS = {
    "b": ("true", "false"),
    "n": (
        *("0", "1", "-1", "2", "3", "7", "100", "127", "-128", "32768", "2147483647", "-2147483648"),
        "9223372036854775807",
        *("0.5", "-0.1", "1.25", "0.005", "12345678.90", "-0.0", "1e3", "1e308", "-5e-324", "2.5D"),
    ),
    "d": ("DATE'2024-02-29'", "date '0001-01-01'", "DATE'9999-12-31'"),
    "t": ("TIMESTAMP'2024-03-01 12:30:45.123456'", "timestamp '0001-01-01'",
    "TIMESTAMP'9999-12-31T23:59:59.999999Z'"),
}  # fmt: skip
_PIECES = (
    *("a", "b", "\u00e9", "\U0001f44d", " ", "-", "[a-z]", "[^a]", "[\\w.-]", "\\d", "\\s", "\\w", "\\.", "."),
    *("(a|bc)", "(?:ab)"),
    *("x?", "a{2}", "[0-9]{1,3}", "a+", ".*", "\\d{2,}", "\\n", "\\S", "(", "]", "[z-a]"),
    *("a??", "(?i)", "|"),
)  # fmt: skip
_LEVELS = 3


class RuleDrawer:
    """Draws what the language takes."""

    def __init__(self, schema: PaymentSchema, choose: random.Random) -> None:
        self._choose = choose
        self._schema = schema
        self._columns: dict[str, list[str]] = {kind: [] for kind in "bnsdt"}
        for field in schema.fields:
            if "<" not in field.type:
                kind = _KINDS.get(field.type.removesuffix("_NTZ"), "n")
                self._columns[kind].append(f"`{field.name}`")
        self._words: dict[str, list[str]] = {kind: [] for kind in "bnsdt"}
        for name, word in FUNCTIONS.items():
            for kind in "bnsdt" if word.gives == "alike" else _KINDS.get(word.gives, "n"):
                self._words[kind].append(name)
        self._columns["s"] += ["tags[0]", "tags[2]"]
        self._columns["n"] += ["counts['a']", "basket.total", "Basket.items[0].n", "size(tags)", "size(counts)"]
        self._columns["t"] += ["basket.items[1].at"]

    def draw(self) -> tuple[str, Node]:
        """A predicate that the language takes, and its tree."""
        while True:
            text = self._write(self._choose.choice("bbbnnsdt"), 1)
            # what is no condition is one below CASE: there the value itself can be seen
            for when in (text, f"({text}) IS NULL"):
                try:
                    node = read_predicate(when, self._schema)
                except LanguageError:  # most of these mix types, or have too many digits
                    continue
                return (when, node) if when == text else (text, node.parts[0])

    def _write(self, kind: str, level: int) -> str:
        kind = self._choose.choice("bnsdt") if kind == "x" else kind
        chance = self._choose.random() + (level - 1) / (_LEVELS * 1.5) - 0.3 * (level == 1)
        if chance > 0.75:
            return self._literal(kind) if self._choose.random() < 0.3 else self._choose.choice(self._columns[kind])
        if chance < 0.35:
            return self._call(self._choose.choice(self._words[kind]), kind, level)
        form = self._choose.choice(_FORMS[kind])
        return re.sub(r"\{(\w+)\}", lambda found: self._operand(found[1], level), form)

    def _call(self, name: str, kind: str, level: int) -> str:
        takes = list(FUNCTIONS[name].takes)
        takes += takes[-1:] * self._choose.randrange(3) if takes[-1].endswith("*") else []
        takes = takes[:-1] if takes[-1].endswith("?") and self._choose.random() < 0.5 else takes
        operands = (self._operand(kind if one[:5] == "alike" else one.strip("*?"), level) for one in takes)
        return f"{name}({', '.join(operands)})"

    def _operand(self, kind: str, level: int) -> str:
        if kind == "count":
            return str(self._choose.choice((0, 1, 1, 2, 3, 5, 40)))
        if kind == "like":
            parts = self._choose.choices(
                ("%", "_", "a", "\\%", "s", "\\_", "\u00e9", "\n", "%", "I"), k=self._choose.randint(0, 5)
            )
            return quoted("".join(parts))
        if kind == "regex":
            body = "".join(self._choose.choices(_PIECES, k=self._choose.randint(0, 4)))
            return quoted(self._choose.choice(("", "", "^")) + body + self._choose.choice(("", "", "$")))
        if kind == "literal":
            return quoted(self._choose.choice(WORDS))
        return self._write(kind if len(kind) == 1 else _KINDS.get(kind, "n"), level + 1)

    def _literal(self, kind: str) -> str:
        return quoted(self._choose.choice(WORDS)) if kind == "s" else self._choose.choice(_LITERALS[kind])


def quoted(text: str) -> str:
    """A text as one writes it in a rule."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def drawn_schema(schema: PaymentSchema, choose: random.Random) -> PaymentSchema:
    """The schema in another order, with decimals of other digits, and perhaps with a unit of times."""

    def other(_: re.Match[str]) -> str:
        precision = choose.randint(1, 38)
        return f"DECIMAL({precision}, {choose.randint(0, precision)})"

    fields = [replace(field, type=re.sub(r"DECIMAL\(.*?\)", other, field.type)) for field in schema.fields]
    return PaymentSchema(tuple(choose.sample(fields, len(fields))), time_unit=choose.choice(("", "s", "us")))
