"""Tables of results for the documentation, and how a number is written, the same everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from fraud_filter.errors import FraudFilterError

NOT_MEASURED = "\N{EN DASH}"


def format_number(value: float | None) -> str:
    """A number as people read it: thousands parted, no needless decimals, a dash for what is not known."""
    return NOT_MEASURED if value is None else f"{value:,.10g}"


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
