"""How numbers are written, the same in the terminal and on pages."""

from __future__ import annotations

NOT_MEASURED = "\N{EN DASH}"


def format_number(value: float | None) -> str:
    """A number as people read it: thousands parted, no needless decimals, a dash for what is not known."""
    return NOT_MEASURED if value is None else f"{value:,.10g}"


def label_fact(name: str) -> str:
    """The name of a fact in words, with the unit that it ends with in brackets: warmup_s is "warmup (s)"."""
    stem, _, last = name.rpartition("_")
    units = {"s": "s", "ms": "ms", "gib": "GiB"}
    return f"{stem.replace('_', ' ')} ({units[last]})" if last in units else name.replace("_", " ")
