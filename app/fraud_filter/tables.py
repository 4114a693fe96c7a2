"""Tables of results for the documentation, and how a figure is written in any table."""

from __future__ import annotations

import re
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


def write_between(file: Path, name: str, text: str) -> None:
    """Replaces what stands between `<!-- name: begin -->` and `<!-- name: end -->`.

    Raises:
        FraudFilterError: the file has no such markers, or can't be written.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    try:
        old = file.read_text(encoding="utf-8")
        new, found = re.subn(
            f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: f"{begin}\n{text}\n{end}", old, count=1, flags=re.DOTALL
        )
        if not found:
            raise FraudFilterError(f"{file} has no place for the table: it needs the lines {begin} and {end}")
        file.write_text(new, encoding="utf-8")
    except OSError as error:
        raise FraudFilterError(f"{file} can't be written: {error.strerror or error}") from None
