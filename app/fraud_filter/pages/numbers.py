"""How numbers are written, the same in the terminal and on pages."""

from __future__ import annotations

NOT_MEASURED = "\N{EN DASH}"


def format_number(value: float | None) -> str:
    """A number as people read it: thousands parted, no needless decimals, a dash for what is not known."""
    return NOT_MEASURED if value is None else f"{value:,.10g}"
