"""Tables of results for the documentation, and how a figure is written in any table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from fraud_filter.errors import FraudFilterError


def shown(figure: float | None) -> str:
    """With thousands apart; a dash when there is none."""
    return "-" if figure is None else f"{figure:,}"


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The lines of a table; cells may hold Markdown, and a bar in one does not end it."""
    head, *lines = ("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in (columns, *rows))
    return "\n".join((head, "|" + "---|" * len(columns), *lines))


def find_place(file: Path, name: str) -> tuple[str, str]:
    """What stands in a file up to `<!-- name: begin -->`, and from `<!-- name: end -->` on, both lines included.

    Raises:
        FraudFilterError: the file has no such lines, or can't be read.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FraudFilterError(f"{file} can't be read: {error}") from None
    before, begun, rest = text.partition(begin)
    _, ended, after = rest.partition(end)
    if not (begun and ended):
        raise FraudFilterError(f"{file} has no place for the table: it needs the lines {begin} and {end}")
    return before + begun, ended + after


def write_between(file: Path, name: str, text: str) -> None:
    """Replaces what stands between `<!-- name: begin -->` and `<!-- name: end -->`.

    Raises:
        FraudFilterError: the file has no such lines, or can't be written.
    """
    before, after = find_place(file, name)
    try:
        file.write_text(f"{before}\n{text}\n{after}", encoding="utf-8")
    except OSError as error:
        raise FraudFilterError(f"{file} can't be written: {error.strerror or error}") from None
