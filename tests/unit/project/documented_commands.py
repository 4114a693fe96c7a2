"""The commands that the documents name: in fenced blocks as a reader copies them, and within sentences."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template

from fraud_filter.home import HOME

PAGES = [
    *(HOME / page for page in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "monitoring/README.md")),
    *sorted((HOME / "docs").rglob("*.md")),
]
#: A word of a sentence's command that stands for a value: `MODE`, `CHANGE…`, `…`.
_PLACEHOLDER = re.compile(r"[A-Z]+…?|.*…")
#: A fenced block of code, with the whole first line behind its fence.
_BLOCK = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
#: What is code in a sentence; it may be broken once.
_INLINE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
#: How a command begins, in sentences and in blocks that are no shell's.
_BEGINS = re.compile(
    r"(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?(?:fraud-filter|make|docker|pytest|python3?|promtool) |FRAUD_\w+="
)
_ASSIGNMENT = re.compile(r"([A-Za-z_]+)=(.*)", re.DOTALL)


@dataclass(frozen=True)
class Call:
    """One command.

    `settings`: what is assigned before it, or alone. `whole`: it has all its arguments, as in a block; a sentence may
    leave out what is required.
    """

    place: str
    words: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    whole: bool

    def __str__(self) -> str:
        return f"{self.place}: {shlex.join(self.words) or self.settings[0][0]}"


def is_placeholder(value: object) -> bool:
    """Whether it stands for a value."""
    return isinstance(value, str) and _PLACEHOLDER.fullmatch(value) is not None


def find_calls(page: Path) -> list[Call]:
    """All commands of a page, in its order."""
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(HOME)
    found: list[tuple[int, Call]] = []
    for block in _BLOCK.finditer(text):
        variables: dict[str, str] = {}
        for number, line in enumerate(_typed(*block.groups()), text.count("\n", 0, block.start()) + 2):
            calls = split(line, f"{name}:{number}", variables, whole=True)
            found += [(number, call) for call in calls]
    sentences = _BLOCK.sub(lambda block: "\n" * block.group().count("\n"), text)
    for code in _INLINE.finditer(sentences):
        line = " ".join(code.group(1).replace(r"\|", "|").split())
        if _BEGINS.match(line):
            number = sentences.count("\n", 0, code.start()) + 1
            found += [(number, call) for call in split(line, f"{name}:{number}", {}, whole=False)]
    return [call for _, call in sorted(found, key=lambda each: each[0])]


def _typed(language: str, text: str) -> Iterator[str]:
    """What a reader types of a block, line by line; the others are empty."""
    for line in text.splitlines():
        if language == "sh":
            yield line
        elif line.startswith("$ "):
            yield line.removeprefix("$ ")
        else:
            yield line if language == "text" and _BEGINS.match(line) else ""


def split(line: str, place: str, variables: dict[str, str], *, whole: bool) -> Iterator[Call]:
    """The commands of a line of shell; `variables` are those of its block."""
    words: list[str] = []
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&")
    lexer.whitespace_split = True
    for word in [*lexer, ";"]:
        if set(word) <= set(lexer.punctuation_chars):
            if call := _call(words, place, variables, whole=whole):
                yield call
            words = []
        else:
            words.append(Template(word).safe_substitute(variables))


def _call(words: list[str], place: str, variables: dict[str, str], *, whole: bool) -> Call | None:
    rest = words[1:] if words[:1] == ["export"] else list(words)
    settings: dict[str, str] = {}
    while rest and (assigned := _ASSIGNMENT.fullmatch(rest[0])):
        settings[assigned[1]] = assigned[2]
        rest.pop(0)
    if rest:
        rest[0] = rest[0].removeprefix(".venv/bin/")
    else:
        variables |= settings
    return Call(place, tuple(rest), tuple(settings.items()), whole) if rest or settings else None
