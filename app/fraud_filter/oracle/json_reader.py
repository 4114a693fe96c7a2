"""Reads a JSON object exactly as leniently as Spark's `from_json` does. Knows nothing of payments.

Spark reads with Jackson: single quotes and unquoted `NaN` are accepted, and a field of type STRING takes any value as
Jackson would write it. All of it was tried against Spark 4.3
(`tests/embedded/test_oracle_spark.py`). Python's `json` reads the ordinary records; this is for the odd ones.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

#: Limits of Jackson (StreamReadConstraints): deeper, longer or larger input is refused. At the seams of its buffers,
#: and behind a leading zero, Jackson lets one digit more through: whoever sends 1001 digits may be judged otherwise.
MAX_DEPTH = 1000
MAX_DIGITS = 1000
MAX_NAME = 50_000

_SPACE = re.compile(r"[ \t\r\n]*")
_PLAIN = r"\\\x00-\x1f"
_ESCAPE = r"\\(?:[\"'\\/bfnrt]|u[0-9a-fA-F]{4})"
_QUOTED = {
    quote: re.compile(f"{quote}([^{quote}{_PLAIN}]*(?:{_ESCAPE}[^{quote}{_PLAIN}]*)*){quote}") for quote in "\"'"
}
_ANY_QUOTED = re.compile("|".join(pattern.pattern for pattern in _QUOTED.values()))
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORD = re.compile(r"true|false|null|NaN|[+-]?Infinity|[+-]INF")
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_EXPONENT = re.compile(r"[0-9](?:\.([0-9]+))?[eE]([+-]?[0-9]+)")
_SURROGATE_PAIR = re.compile("([\ud800-\udbff])([\udc00-\udfff])")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class MalformedJsonError(ValueError):
    """The text does not begin with a JSON object that Spark could read."""


class TrailingContentError(ValueError):
    """Something that is no white space follows the object."""


class DuplicateKeyError(ValueError):
    """The object, or one within it, has a name twice."""


class Token(NamedTuple):
    """One JSON value. `kind`: string, int, float, word (NaN and the like), true, false, null or container.

    `text` is the content of a string, the digits of a number, and a container as Jackson writes it again.
    """

    kind: str
    text: str


def read_members(text: str) -> list[tuple[str, Token]] | None:
    """The members of the object that `text` is, in order; None for blank text.

    Raises:
        MalformedJsonError: it does not begin with an object that Spark would read.
        TrailingContentError, DuplicateKeyError: it does; the first where both hold.
    """
    position = _skip(text, 0)
    if position == len(text):
        return None
    if text[position] != "{":
        raise MalformedJsonError("not a JSON object")
    repeated: list[str] = []
    members, position = _members(text, _skip(text, position + 1), repeated)
    if _skip(text, position) < len(text):
        raise TrailingContentError(f"the object ends at character {position}")
    names = [name for name, _ in members]
    if repeated or len(set(names)) < len(names):
        raise DuplicateKeyError
    return members


def _members(text: str, position: int, repeated: list[str]) -> tuple[list[tuple[str, Token]], int]:
    """The members of the outermost object and where it ends; names that objects within it repeat are added."""
    members: list[tuple[str, Token]] = []
    if text[position : position + 1] == "}":
        return members, position + 1
    while True:
        name, position = _name(text, position)
        token, position = _value(text, position, repeated)
        members.append((name, token))
        position = _skip(text, position)
        if text[position : position + 1] == "}":
            return members, position + 1
        if text[position : position + 1] != ",":
            raise MalformedJsonError(f"',' or '}}' expected at character {position}")
        position = _skip(text, position + 1)


def has_endless_number(text: str) -> bool:
    """Whether a number in a JSON text has more places than 32 bits can count, which Java's BigDecimal refuses."""
    numbers = _ANY_QUOTED.sub("", text)
    places = (len(match[1] or "") - int(match[2]) for match in _EXPONENT.finditer(numbers))
    return not all(-(2**31) <= count < 2**31 for count in places)


def written(token: Token) -> str:
    """A value that is not a string, as Jackson writes it: what a STRING field receives."""
    if token.kind == "string":
        return _quote(token.text)
    if token.kind == "int":
        return "0" if token.text == "-0" else token.text
    if token.kind == "float":
        text = java_double(float(token.text))
        return f'"{text}"' if text.endswith("Infinity") else text
    if token.kind == "word":
        return f'"{token.text.replace("INF", "Infinity").lstrip("+") if token.text != "Infinity" else token.text}"'
    return token.text


def java_double(number: float) -> str:
    """A double as Java's `Double.toString` writes it, such as 1.0E7.

    Java before 19 writes a digit more than needed of some doubles from 1e16 on, and each Java of the very smallest.
    """
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "Infinity" if number > 0 else "-Infinity"
    sign = "-" if repr(number).startswith("-") else ""
    if number == 0:
        return f"{sign}0.0"
    _, digits_tuple, exponent = Decimal(repr(abs(number))).normalize().as_tuple()
    digits = "".join(map(str, digits_tuple))
    point = len(digits) + int(exponent)  # the decimal point stands behind this many digits
    if -3 < point <= 7:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _skip(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return space.end() if space else position


def _name(text: str, position: int) -> tuple[str, int]:
    """The name of a member and where its value begins."""
    name, position = _string(text, position)
    if len(name) > MAX_NAME:
        raise MalformedJsonError("a name is too long")
    position = _skip(text, position)
    if text[position : position + 1] != ":":
        raise MalformedJsonError(f"':' expected at character {position}")
    return name, _skip(text, position + 1)


def _string(text: str, position: int) -> tuple[str, int]:
    pattern = _QUOTED.get(text[position : position + 1])
    match = pattern.match(text, position) if pattern else None
    if match is None:
        raise MalformedJsonError(f"a string expected at character {position}")
    content = match[1]
    if "\\" in content:
        content = _ESCAPED.sub(_unescape, content)
        content = _SURROGATE_PAIR.sub(_join, content)
    return content, match.end()


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else _SHORT.get(code, code)


def _join(match: re.Match[str]) -> str:
    return chr(0x10000 + ((ord(match[1]) - 0xD800) << 10) + ord(match[2]) - 0xDC00)


def replace_surrogates(text: str) -> str:
    """The text as UTF-8 can hold it: Java writes a lone surrogate as '?'."""
    return _LONE_SURROGATE.sub("?", text)


def _value(text: str, position: int, repeated: list[str]) -> tuple[Token, int]:
    if text[position : position + 1] in ("{", "["):
        return _container(text, position, repeated)
    return _scalar(text, position)


def _scalar(text: str, position: int) -> tuple[Token, int]:
    if text[position : position + 1] in ('"', "'"):
        content, end = _string(text, position)
        return Token("string", content), end
    number = _NUMBER.match(text, position)
    if number:
        if sum(map(str.isdigit, number[0])) > MAX_DIGITS:
            raise MalformedJsonError("a number is too long")
        return Token("float" if number[1] or number[2] else "int", number[0]), number.end()
    word = _WORD.match(text, position)
    if word is None:
        raise MalformedJsonError(f"a value expected at character {position}")
    return Token(word[0] if word[0] in ("true", "false", "null") else "word", word[0]), word.end()


def _container(text: str, position: int, repeated: list[str]) -> tuple[Token, int]:
    """An object or array inside the record; without recursion, so that depth costs no stack."""
    parts: list[str] = []
    closers: list[str] = []
    names: list[set[str]] = []  # of each open container
    while True:
        opener = text[position : position + 1]
        if opener in ("{", "["):
            closers.append("}" if opener == "{" else "]")
            names.append(set())
            if len(closers) >= MAX_DEPTH:
                raise MalformedJsonError("nested too deeply")
            parts.append(opener)
            position = _skip(text, position + 1)
            if text[position : position + 1] != closers[-1]:
                position = _open_member(text, position, closers[-1], parts, names[-1], repeated)
                continue
        else:
            token, position = _scalar(text, position)
            parts.append(written(token))
        position = _close(text, position, closers, parts)
        if not closers:
            return Token("container", "".join(parts)), position
        del names[len(closers) :]
        if text[position : position + 1] != ",":
            raise MalformedJsonError(f"',' or {closers[-1]!r} expected at character {position}")
        parts.append(",")
        position = _open_member(text, _skip(text, position + 1), closers[-1], parts, names[-1], repeated)


def _open_member(text: str, position: int, closer: str, parts: list[str], names: set[str], repeated: list[str]) -> int:
    """Reads the name that stands before a value in an object; returns where the value begins."""
    if closer == "]":
        return position
    name, position = _name(text, position)
    if name in names:
        repeated.append(name)
    names.add(name)
    parts.append(f"{_quote(name)}:")
    return position


def _close(text: str, position: int, closers: list[str], parts: list[str]) -> int:
    """Closes all containers that end here; returns the position of what follows."""
    position = _skip(text, position)
    while closers and text[position : position + 1] == closers[-1]:
        parts.append(closers.pop())
        position += 1
        if closers:
            position = _skip(text, position)
    return position


_NAMED = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_QUOTE = re.compile('["\\\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]')


def _quote(text: str) -> str:
    return f'"{_QUOTE.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char in _NAMED:
        return _NAMED[char]
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2))
