"""Where tables are printed. Imports rich: import it where it is used."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from fraud_filter.text.terminal import printable_lines


class PrintableConsole(Console):
    """A console in whose strings no character acts on the terminal, be they printed, titles or cells of tables."""

    def __init__(self, **options: Any) -> None:
        """`options` are those of rich's own console."""
        super().__init__(**{"highlight": False, **options})

    def render_str(self, text: str, **how: Any) -> Text:
        """The text as rich shows it; all strings come here."""
        return super().render_str(printable_lines(text), **how)
