"""Where a verb prints its tables."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def open_console(log_width: int) -> Console:
    """The standard output, as wide as the terminal; `log_width` columns where it is none, such as a log."""
    from fraud_filter.text.console import PrintableConsole

    return PrintableConsole(width=None if sys.stdout.isatty() else log_width)
