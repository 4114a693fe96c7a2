"""Spark DDL columns, as far as a payment may have them: `amount DOUBLE NOT NULL, tags ARRAY<STRING> COMMENT '…'`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

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
_MOST_DIGITS, _MOST_DEEP = 38, 20
_TOKEN = re.compile(
    r"(?P<skip>\s+|--[^\n]*|/\*.*?\*/)|(?P<quoted>`(?:[^`]|``)+`)|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<number>\d+(?!\w))|(?P<word>\w+)|(?P<sign>[,:<>()])",
    re.DOTALL,
)


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


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def parse_columns(text: str) -> list[Column]:
    """The columns of a DDL text, in their order.

    Raises:
        DdlError: it is no such text, or has a word that no payment's field may have.
    """
    parser = _Parser(text)
    columns = [parser.column()]
    while parser.takes(","):
        columns.append(parser.column())
    parser.expect_end()
    return columns


def parse_type(text: str) -> Kind:
    """The type of a column.

    Raises:
        DdlError: it is none that a payment's field may have.
    """
    parser = _Parser(text)
    kind = parser.type()
    parser.expect_end()
    return kind


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"`{name}`"


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._next = 0

    def column(self) -> Column:
        name = self._name()
        kind = self.type()
        required = None
        while self._peek().kind == "word":
            at, word = self._peek(), self._take().text.upper()
            if word == "COMMENT":
                if self._peek().kind != "text":
                    raise self._wrong("a text must follow COMMENT")
                self._take()
            elif word in ("NOT", "NULL") and required is None:
                required = word == "NOT"
                if required and not self._takes_word("NULL"):
                    raise self._wrong("NULL must follow NOT")
            else:
                raise self._wrong(f"{at.text!r} may not stand here; a field may be NOT NULL and have a COMMENT", at)
        return Column(name, str(kind), bool(required))

    def takes(self, sign: str) -> bool:
        """Goes on behind the sign where that comes next."""
        found = self._peek()[:2] == ("sign", sign)
        self._next += found
        return found

    def expect_end(self) -> None:
        if self._peek().kind != "end":
            raise self._wrong(f"{self._peek().text!r} may not stand here; a comma parts the fields")

    def type(self, depth: int = 0) -> Kind:
        at = self._peek()
        word = self._take().text.upper() if at.kind == "word" else ""
        if depth > _MOST_DEEP:
            raise self._wrong(f"types are nested more than {_MOST_DEEP} deep", at)
        if word in _NESTED:
            return self._nested(word, depth)
        if word not in SCALARS:
            listed = ", ".join((*dict.fromkeys(SCALARS.values()), *_NESTED))
            what = f"{at.text!r} is no type that a field may have" if at.text else "a type is missing"
            raise self._wrong(f"{what}; there are {listed}", at)
        return self._decimal() if SCALARS[word] == "DECIMAL" else Kind(SCALARS[word])

    def _nested(self, word: str, depth: int) -> Kind:
        self._expect("<")
        if word == "STRUCT":
            parts = self._parts(depth)
        else:
            if word == "MAP":
                at = self._peek()
                if self.type(depth + 1) != Kind("STRING"):
                    raise self._wrong("the keys of a MAP are STRING, as those of JSON are", at)
                self._expect(",")
            parts = [("", self.type(depth + 1))]
        self._expect(">")
        return Kind(word, tuple(parts))

    def _parts(self, depth: int) -> list[tuple[str, Kind]]:
        """The fields of a struct; each may be null."""
        parts: list[tuple[str, Kind]] = []
        while not parts or self.takes(","):
            at = self._peek()
            name = self._name()
            if name.lower() in (other.lower() for other, _ in parts):
                raise self._wrong(f"the field {name!r} is there twice", at)
            self.takes(":")
            parts.append((name, self.type(depth + 1)))
        return parts

    def _decimal(self) -> Kind:
        """DECIMAL alone is Spark's DECIMAL(10, 0)."""
        if not self.takes("("):
            return Kind("DECIMAL", precision=10)
        at = self._peek()
        digits = self._number()
        scale = self._number() if self.takes(",") else 0
        self._expect(")")
        if not 0 < digits <= _MOST_DIGITS or scale > digits:
            words = f"a DECIMAL has 1 to {_MOST_DIGITS} digits, and no more of them behind the point"
            raise self._wrong(words, at)
        return Kind("DECIMAL", precision=digits, scale=scale)

    def _number(self) -> int:
        if self._peek().kind != "number":
            raise self._wrong("a number is missing")
        return int(self._take().text[:9])

    def _name(self) -> str:
        token = self._peek()
        if token.kind not in ("word", "quoted"):
            raise self._wrong("the name of a field is missing")
        self._next += 1
        name = token.text.strip("`")
        if "`" in name:
            raise self._wrong("a name may not hold a backtick", token)
        return name

    def _expect(self, sign: str) -> None:
        if not self.takes(sign):
            raise self._wrong(f"{sign!r} is missing")

    def _takes_word(self, word: str) -> bool:
        found = self._peek().kind == "word" and self._peek().text.upper() == word
        self._next += found
        return found

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        self._next += 1
        return self._tokens[self._next - 1]

    def _split(self) -> Iterator[_Token]:
        at = 0
        while at < len(self._text):
            found = _TOKEN.match(self._text, at)
            if found is None:
                raise self._wrong("this can't be read (a quotation or comment may be left open)", _Token("", "", at))
            if found.lastgroup != "skip":
                yield _Token(str(found.lastgroup), found[0], at)
            at = found.end()
        yield _Token("end", "", at)

    def _wrong(self, reason: str, token: _Token | None = None) -> DdlError:
        at = (token or self._peek()).at
        line, column = self._text.count("\n", 0, at) + 1, at - self._text.rfind("\n", 0, at)
        return DdlError(f"line {line}, column {column}: {reason}")
