"""What a terminal may be shown: text in which no character acts on it. All that quotes others goes through here."""

from __future__ import annotations

import unicodedata

#: Unicode's control characters (C0, DEL, C1), format characters (those that turn the direction of writing, or have no
#: width), surrogates, and separators of lines and paragraphs.
_ACTING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
#: What lays out text of our own: several lines, tables.
_LAYOUT = "\n\t"


def printable(text: str, keep: str = "") -> str:
    r"""The text with every character that a terminal would act on written as an escape, such as `\x1b`.

    Args:
        keep: characters to leave, such as a line's end in a message of several lines.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        letter if letter in keep or unicodedata.category(letter) not in _ACTING else _escape(letter) for letter in text
    )


def printable_lines(text: str) -> str:
    """The same for text of several lines: their ends and tabs stay."""
    return printable(text, _LAYOUT)


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape", "surrogatepass").decode("ascii")
