"""The patterns of LIKE and RLIKE that a rule may hold: Java and Python read them alike, in time linear in the text.

A pattern is parsed, and written again without anything that Java and Python read differently: `.` is any character but
a line feed, `$` the end of the text, `\\d`, `\\w` and `\\s` are ASCII. A part that may match in several ways multiplies
the looks at what follows it; a part without an end stands last, or once behind `^`.
"""

from __future__ import annotations

import re

#: How often a part may repeat, where a number says it.
_MOST_TIMES = 100
#: A class takes as long as so many characters, and a part that repeats as long as a class.
_CLASS_LOOKS = 4
_SHORTHANDS = {"d": "0-9", "w": "a-zA-Z0-9_", "s": r" \t\n\x0b\f\r"}
_ONE = r"\\.|\[\^?(?:[^\\\[\]&~^]|\\.)+\]|[^\\\[\](){}*+?|^$]"
_PART = re.compile(
    rf"(?P<bar>\|)|(?P<begin>\^)|(?P<end>\$)|(?:\((?:\?:)?(?P<words>(?:{_ONE}|\|)*)\)|(?P<one>{_ONE}))"
    r"(?P<times>[?*+]|\{(?P<least>\d{1,3})(?:,(?P<most>\d{1,3}))?\})?",
    re.DOTALL,
)
_MEMBER = re.compile(r"(\\?.)-(\\?.)|(\\?.)", re.DOTALL)


class UnplacedError(ValueError):
    """Why a rule may not hold a part, before it is known where that stands."""


def read_like(pattern: str) -> str:
    """A pattern of LIKE as a regular expression.

    Raises:
        UnplacedError: a `\\` stands before what needs none, or there is more than one `%` before the pattern's end, so
            that the text would be looked at again for each of its characters.
    """
    regex = list[str]()
    for part in re.findall(r"\\.?|.", pattern, re.DOTALL):
        if part[0] == "\\" and part[1:] not in ("%", "_", "\\"):
            raise UnplacedError("has '\\' before what is none of %, _ and '\\'")
        regex.append({"%": ".*", "_": "."}.get(part) or re.escape(part[-1]))
    if "".join("%" if one == ".*" else "." for one in regex).rstrip("%").count("%") > 1:
        raise UnplacedError("has several % before its end; write contains(…, 'a') AND contains(…, 'b')")
    return "".join(regex)


def read_regex(pattern: str) -> tuple[str, int]:
    """A regular expression that is looked for anywhere in a text, and how often it looks at each character.

    Raises:
        UnplacedError: it is more than a rule may hold; says which part.
    """
    text, looks, at = "", 0, 0
    ways, endless, is_anchored, is_first = 1, 0, False, True
    while at < len(pattern):
        found = _PART.match(pattern, at)
        if found is None:
            raise UnplacedError(
                f"has {pattern[at : at + 3]!r}, which a rule may not hold; write signs with \\ before them"
            )
        at = found.end()
        is_last = at == len(pattern) or pattern[at] == "|"
        if found["bar"]:
            text, ways, endless, is_anchored = text + "|", 1, 0, False
        elif found["begin"] or found["end"]:
            if not (is_first if found["begin"] else is_last):
                raise UnplacedError(
                    f"has {found[0]} where it is not its beginning or end; write \\{found[0]} for the sign"
                )
            is_anchored = is_anchored or bool(found["begin"])
            text += r"\A" if found["begin"] else r"(?!(?s:.))"
        else:
            part, its_ways, its_looks, is_endless = _part(found)
            text, looks = text + part, looks + ways * its_looks
            ways, endless = (ways, endless) if is_last else (ways * its_ways, endless + is_endless)
        is_first = bool(found["bar"])
        if endless > is_anchored:
            raise UnplacedError(
                "has * or + elsewhere than at its end, or once behind ^; write how often, as in [0-9]{1,10}"
            )
    return text, max(looks, 1)


def _part(found: re.Match[str]) -> tuple[str, int, int, bool]:
    """A part: its text, in how many ways it may match at a place, its looks, and whether it has no end."""
    ones = [_one(one) for one in re.findall(rf"\||{_ONE}", found["one"] or found["words"] or "", re.DOTALL)]
    text, ways, looks = "".join(one for one, _ in ones), 1 + sum(one == "|" for one, _ in ones), sum(n for _, n in ones)
    text = text if found["one"] else f"(?:{text})"
    times = found["times"]
    if not times:
        return text, ways, looks, False
    if not found["one"]:
        raise UnplacedError(f"repeats a group {times!r}; only a single character or class may repeat")
    least = int(found["least"] or times == "+")
    most = int(found["most"] or least or 1)
    if not least <= most <= _MOST_TIMES:
        raise UnplacedError(f"has {times!r}; a part may repeat up to {_MOST_TIMES} times")
    return text + times, 1 + most - least, max(looks, _CLASS_LOOKS) * most, times in ("*", "+")


def _one(text: str) -> tuple[str, int]:
    """A character or class as both engines read it, and its looks."""
    if text == "|":
        return text, 0
    if text[0] == "[":
        negation = "^" if text[1] == "^" else ""
        text = f"[{negation}{_MEMBER.sub(_member, text[1 + len(negation) : -1])}]"
    else:
        text = r"[^\n]" if text == "." else _plain(text, within=False)
    return text, _CLASS_LOOKS if text[0] == "[" else 1


def _member(found: re.Match[str]) -> str:
    """What stands in a class: a character, a shorthand, or a range of characters."""
    if found[3]:
        return _plain(found[3], within=True)
    first, last = (_plain(found[number], within=True) for number in (1, 2))
    if first[-1] > last[-1] or len(first) > 2 or len(last) > 2:
        raise UnplacedError(f"has the range {found[0]!r}; a range goes from a character to a later one")
    return f"{first}-{last}"


def _plain(text: str, within: bool) -> str:
    """A character as both engines take it for itself, or a shorthand as the class that it is."""
    letter = text[-1]
    if len(text) > 1 and letter in _SHORTHANDS:
        return _SHORTHANDS[letter] if within else f"[{_SHORTHANDS[letter]}]"
    if len(text) > 1 and (letter.isalnum() or not letter.isascii()):
        raise UnplacedError(f"has {text!r}; a rule knows \\d, \\w, \\s and signs behind a \\")
    return "\\" + letter if letter.isascii() and not letter.isalnum() and letter > " " else letter
