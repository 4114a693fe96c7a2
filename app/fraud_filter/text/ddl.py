"""Spark DDL columns, as far as a payment may have them: `amount DOUBLE NOT NULL, tags ARRAY<STRING> COMMENT '…'`."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from lark import Lark, UnexpectedInput

#: The types that a field may have, by each name that Spark knows them by.
SCALARS = {
    **{name: name for name in ("STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE")},
    **{name: name for name in ("TIMESTAMP", "TIMESTAMP_NTZ", "DECIMAL")},
    "BYTE": "TINYINT", "SHORT": "SMALLINT", "INTEGER": "INT", "LONG": "BIGINT", "REAL": "FLOAT", "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL", "TIMESTAMP_LTZ": "TIMESTAMP",
}  # fmt: skip
#: Bits of the whole numbers.
WHOLE = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_NESTED = ("ARRAY", "MAP", "STRUCT")
MOST_DIGITS, _MOST_DEEP = 38, 20
#: A name may be any word, that of a type or a keyword too: which one it is its place tells.
_GRAMMAR = r"""
columns: column ("," column)*
column: _name kind (NOT NULL | NULL | COMMENT TEXT)*
kind: SCALAR
    | DECIMAL ["(" NUMBER ["," NUMBER] ")"]
    | ARRAY "<" kind ">"
    | MAP "<" kind "," kind ">"
    | STRUCT "<" part ("," part)* ">"
part: _name [":"] kind
_name: WORD | QUOTED

WORD: /(?!\d+(?!\w))\w+/
QUOTED: /`(?:[^`]|``)+`/
TEXT: /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/s
NUMBER: /\d+(?!\w)/
%ignore /\s+|--[^\n]*|\/\*(.|\n)*?\*\//
"""
_WORDS = {
    "SCALAR": "|".join(name for name, kind in SCALARS.items() if kind != "DECIMAL"),
    "DECIMAL": "|".join(name for name, kind in SCALARS.items() if kind == "DECIMAL"),
    **{word: word for word in (*_NESTED, "NOT", "NULL", "COMMENT")},
}
#: What is missing where a sign or a word of this kind has to follow. A type has the other words of the table, too.
_MISSING = {
    "WORD": "the name of a field is missing",
    "NUMBER": "a number is missing",
    "TEXT": "a text must follow COMMENT",
    "LESSTHAN": "'<' is missing",
    "MORETHAN": "'>' is missing",
    "RPAR": "')' is missing",
}


class Kind(NamedTuple):
    """A type: its name in upper case, of a DECIMAL its digits, and those behind the point, and what it is made of.

    `parts` are the fields of a STRUCT by name, the elements of an ARRAY, or the values of a MAP, whose keys are STRING.
    """

    name: str
    parts: tuple[tuple[str, Kind], ...] = ()
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        """As DDL."""
        if self.name == "DECIMAL":
            return f"DECIMAL({self.precision}, {self.scale})"
        if self.name == "STRUCT":
            return f"STRUCT<{', '.join(f'{_quoted(name)}: {kind}' for name, kind in self.parts)}>"
        inner = "".join(str(kind) for _, kind in self.parts)
        return {"ARRAY": f"ARRAY<{inner}>", "MAP": f"MAP<STRING, {inner}>"}.get(self.name, self.name)


class Column(NamedTuple):
    """A column: its name, its type as DDL, whether it is NOT NULL; of a struct's fields this is left out."""

    name: str
    type: str
    required: bool


class DdlError(ValueError):
    """What is wrong, and where: "line 1, column 6: …"."""


def parse_columns(text: str) -> list[Column]:
    """The columns of a DDL text, in their order.

    Raises:
        DdlError: it is no such text, or has a word that no payment's field may have.
    """
    columns = []
    found = [column.children for column in _parse(text, "columns").children]
    for name, (_, kind, *more) in zip(_names(text, [token for token, *_ in found]), found, strict=True):
        nulls = [token for token in more if token.type in ("NOT", "NULL")]
        own = 2 if nulls and nulls[0].type == "NOT" else 1
        if len(nulls) > own:
            raise _not_here(text, nulls[own])
        columns.append(Column(name, str(_kind(text, kind)), own == 2))
    return columns


@functools.cache
def parse_type(text: str) -> Kind:
    """The type of a column.

    Raises:
        DdlError: it is none that a payment's field may have.
    """
    return _kind(text, _parse(text, "kind"))


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"`{name}`"


@functools.cache
def _parser() -> Lark:
    from lark import Lark

    words = (rf"{name}.2: /({words})(?!\w)/i" for name, words in _WORDS.items())
    return Lark("\n".join((_GRAMMAR, *words)), parser="lalr", start=["columns", "kind"])


def _parse(text: str, start: str) -> Any:
    from lark import UnexpectedInput

    try:
        return _parser().parse(text, start)
    except UnexpectedInput as error:
        raise _explain(text, error) from None


def _explain(text: str, error: UnexpectedInput) -> DdlError:
    from lark import UnexpectedToken

    if not isinstance(error, UnexpectedToken):
        return _wrong(text, error.pos_in_stream or 0, "this can't be read (a quotation or comment may be left open)")
    token, expected = error.token, error.accepts or error.expected
    at = len(text) if token.type == "$END" else token.start_pos or 0
    if "SCALAR" in expected:
        listed = ", ".join((*dict.fromkeys(SCALARS.values()), *_NESTED))
        is_word = token.value[:1].isalpha() or token.value[:1] == "_"
        what = f"{token.value!r} is no type that a field may have" if is_word else "a type is missing"
        return _wrong(text, at, f"{what}; there are {listed}")
    if expected == {"NULL"}:
        return _wrong(text, at, "NULL must follow NOT")
    missing = next((words for name, words in _MISSING.items() if name in expected), None)
    return _wrong(text, at, missing) if missing else _not_here(text, token)


def _not_here(text: str, token: Any) -> DdlError:
    why = (
        f"{token.value!r} may not stand here; a field may be NOT NULL and have a COMMENT, and a comma parts the fields"
    )
    return _wrong(text, token.start_pos, why)


def _wrong(text: str, at: int, reason: str) -> DdlError:
    return DdlError(f"{place_in(text, at)}: {reason}")


def place_in(text: str, at: int) -> str:
    """The line and column of the character `at`, which is counted from 0."""
    before = text[:at].split("\n")
    return f"line {len(before)}, column {len(before[-1]) + 1}"


def _names(text: str, tokens: list[Any]) -> list[str]:
    """The names of fields, each another one: Spark knows them without regard to case."""
    names: list[str] = []
    for token in tokens:
        name = str(token).strip("`")
        if "`" in name:
            raise _wrong(text, token.start_pos, "a name may not hold a backtick")
        if name.lower() in map(str.lower, names):
            raise _wrong(text, token.start_pos, f"the field {name!r} is there twice")
        names.append(name)
    return names


def _kind(text: str, tree: Any, depth: int = 0) -> Kind:
    word, *inner = (child for child in tree.children if child is not None)
    if depth > _MOST_DEEP:
        raise _wrong(text, word.start_pos, f"types are nested more than {_MOST_DEEP} deep")
    if word.type == "SCALAR":
        return Kind(SCALARS[word.upper()])
    if word.type == "DECIMAL":
        return _decimal(text, inner)
    if word.type == "STRUCT":
        names = _names(text, [part.children[0] for part in inner])
        kinds = (_kind(text, part.children[-1], depth + 1) for part in inner)
        return Kind("STRUCT", tuple(zip(names, kinds, strict=True)))
    *keys, values = inner
    for key in keys:
        if _kind(text, key, depth + 1) != Kind("STRING"):
            raise _wrong(text, key.children[0].start_pos, "the keys of a MAP are STRING, as those of JSON are")
    return Kind(word.type, (("", _kind(text, values, depth + 1)),))


def _decimal(text: str, digits: list[Any]) -> Kind:
    """DECIMAL alone is Spark's DECIMAL(10, 0)."""
    numbers = [int(number[:9]) for number in digits] or [10]
    precision, scale = (*numbers, 0)[:2]
    if not 0 < precision <= MOST_DIGITS or scale > precision:
        words = f"a DECIMAL has 1 to {MOST_DIGITS} digits, and no more of them behind the point"
        raise _wrong(text, digits[0].start_pos, words)
    return Kind("DECIMAL", precision=precision, scale=scale)
