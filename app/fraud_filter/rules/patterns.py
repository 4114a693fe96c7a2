"""The patterns of LIKE and RLIKE that a rule may hold: Java and Python read them alike, in time linear in the text.

A pattern is read once and written anew, without what the two understand differently: `.` is any character but a line
feed, `$` the end of the text, `\\d`, `\\w` and `\\s` are ASCII. A part that may match in several ways multiplies the
looks at what follows it; a part without an end stands last, or once behind `^`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

#: How often a part may repeat, where a number says it.
_MOST_TIMES = 100
#: A class takes as long as so many characters, and a part that repeats as long as a class.
_CLASS_LOOKS = 3
_SHORTHANDS = {"d": "0-9", "w": "a-zA-Z0-9_", "s": r" \t\n\x0b\f\r"}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r"}
_TOKEN = re.compile(
    r"(?P<open>\((?:\?:|(?!\?)))|(?P<close>\))|(?P<bar>\|)|(?P<begin>\^)|(?P<end>\$)"
    r"|(?P<set>\[\^?(?:[^\\\[\]&~^]|\\.)+\])|(?P<one>\\.|[^\\\[\](){}*+?])|(?P<times>[?*+]|\{\d{1,3}(?:,\d{0,3})?\})",
    re.DOTALL,
)
_MEMBER = re.compile(r"(\\?.)-(\\?[^\]])|(\\?.)", re.DOTALL)


class PatternError(ValueError):
    """Why a rule may not hold the pattern."""


class _Part(NamedTuple):
    """Part of a pattern: in how many ways it may match at a place, and how many looks at characters that takes."""

    text: str
    ways: int = 1
    looks: int = 1
    is_endless: bool = False
    is_one: bool = False


def read_like(pattern: str, escape: str) -> tuple[str, str]:
    """A pattern of LIKE as Spark reads it, with `\\` as its escape character, and as a regular expression.

    Raises:
        PatternError: the escape character stands before what needs none, or there is more than one `%` before the
            pattern's end, so that the text would be looked at again for each of its characters.
    """
    parts = re.findall(re.escape(escape) + ".?|.", pattern, re.DOTALL)
    spark, regex = "", list[str]()
    for part in parts:
        letter = part[-1]
        if part[0] == escape and (len(part) == 1 or letter not in ("%", "_", escape)):
            raise PatternError(f"has {escape!r} before what is none of %, _ and {escape!r}")
        is_sign = len(part) == 1 and letter in "%_"
        spark += letter if is_sign or letter not in "%_\\" else "\\" + letter
        regex.append({"%": ".*", "_": "."}[letter] if is_sign else re.escape(letter))
    if re.sub("(%)+$", "", "".join("%" if one == ".*" else "." for one in regex)).count("%") > 1:
        raise PatternError("has several % before its end; write contains(…, 'a') AND contains(…, 'b')")
    return spark, "".join(regex)


def read_regex(pattern: str) -> tuple[str, int]:
    """A regular expression that is looked for anywhere in a text, and how often it looks at each character.

    Raises:
        PatternError: it is more than a rule may hold; says which part.
    """
    part = _Reader(pattern).choice(outermost=True)
    return part.text, part.looks


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern, self._at = pattern, 0
        self._token = self._read()

    def choice(self, outermost: bool = False) -> _Part:
        """Alternatives, as far as the bracket that closes them, or the end of the pattern."""
        found = [self._sequence(outermost)]
        while self._takes("bar"):
            found.append(self._sequence(outermost))
        if outermost and self._token[0] != "end of it":
            raise PatternError("has a ) that closes no (")
        return _Part(
            "|".join(one.text for one in found), sum(one.ways for one in found), sum(one.looks for one in found)
        )

    def _sequence(self, outermost: bool) -> _Part:
        is_anchored = outermost and self._takes("begin")
        text, ways, looks, endless = r"\A" if is_anchored else "", 1, 0, 0
        while self._token[0] not in ("bar", "close", "end of it"):
            if outermost and self._takes("end"):
                if self._token[0] not in ("bar", "end of it"):
                    raise PatternError("has a $ that is not at its end; write \\$ for the sign")
                text += r"(?!(?s:.))"
                break
            one = self._repeated()
            is_last = outermost and self._token[0] in ("bar", "end of it")
            text, looks, ways = text + one.text, looks + ways * one.looks, ways if is_last else ways * one.ways
            endless += one.is_endless and not is_last
            if one.is_endless and not outermost:
                raise PatternError("has *, + or {m,} within a group; write how often, as in {1,10}")
        if endless > is_anchored:
            raise PatternError(
                "has *, + or {m,} elsewhere than at its end, or once behind ^; write how often, as in [0-9]{1,10}"
            )
        return _Part(text, ways, max(looks, 1))

    def _repeated(self) -> _Part:
        one = self._one()
        times = self._token[1]
        if not self._takes("times"):
            return one
        if self._token[0] == "times":
            raise PatternError(f"has two quantifiers in a row, {times + self._token[1]!r}; keep one")
        least, most = _bounds(times)
        if not one.is_one and (most is None or (one.ways > 1 and most > 1)):
            raise PatternError(f"repeats a group {times!r}; only a single character or class may repeat so")
        if most is not None and not least <= most <= _MOST_TIMES:
            raise PatternError(f"has {times!r}; a part may repeat up to {_MOST_TIMES} times")
        ways = one.ways if most in (None, least) else one.ways + most - least
        looks = max(one.looks, _CLASS_LOOKS) * (most or max(least, 1))
        return _Part(one.text + times, ways, looks, is_endless=most is None)

    def _one(self) -> _Part:
        kind, text = self._token
        if self._takes("open"):
            inner = self.choice()
            if not self._takes("close"):
                raise PatternError("has a ( that is not closed")
            return inner._replace(text=f"(?:{inner.text})")
        if not (self._takes("one") or self._takes("set")):
            where = {"begin": "^ stands at the beginning alone", "end": "$ stands at the end alone"}
            told = where.get(kind, "write it with \\ before it")
            raise PatternError(f"has {text!r} where it may not stand: {told}")
        if kind == "one":
            found = r"[^\n]" if text == "." else _plain(text, within=False)
            return _Part(found, looks=_CLASS_LOOKS if found[0] == "[" else 1, is_one=True)
        negation = "^" if text[1] == "^" else ""
        members = "".join(_member(found) for found in _MEMBER.finditer(text[1 + len(negation) : -1]))
        return _Part(f"[{negation}{members}]", looks=_CLASS_LOOKS, is_one=True)

    def _takes(self, kind: str) -> bool:
        if self._token[0] != kind:
            return False
        self._token = self._read()
        return True

    def _read(self) -> tuple[str, str]:
        if self._at == len(self._pattern):
            return "end of it", ""
        found = _TOKEN.match(self._pattern, self._at)
        if found is None:
            raise PatternError(
                f"has {self._pattern[self._at :][:3]!r}, which a rule may not hold; write signs with \\ before"
            )
        self._at = found.end()
        return str(found.lastgroup), found[0]


def _bounds(times: str) -> tuple[int, int | None]:
    if times in "?*+":
        return int(times == "+"), 1 if times == "?" else None
    least, comma, most = times[1:-1].partition(",")
    return int(least), int(most or least) if most or not comma else None


def _member(found: re.Match[str]) -> str:
    """What stands in a class: a character, a shorthand, or a range of characters."""
    if found[3]:
        return _plain(found[3], within=True)
    first, last = (_plain(found[number], within=True) for number in (1, 2))
    if first[-1] > last[-1] or len(first) > 2 or len(last) > 2:
        raise PatternError(f"has the range {found[0]!r}; a range goes from a character to a later one")
    return f"{first}-{last}"


def _plain(text: str, within: bool) -> str:
    """A character as both engines take it for itself, or a shorthand as the class that it is."""
    letter = text[-1]
    if len(text) > 1 and letter in _CONTROLS:
        return _CONTROLS[letter]
    if len(text) > 1 and letter in _SHORTHANDS:
        return _SHORTHANDS[letter] if within else f"[{_SHORTHANDS[letter]}]"
    if len(text) > 1 and (letter.isalnum() or not letter.isascii()):
        raise PatternError(f"has {text!r}; a rule knows \\d, \\w, \\s, \\n, \\t, \\r and signs behind a \\")
    return "\\" + letter if letter.isascii() and not letter.isalnum() and letter > " " else letter
