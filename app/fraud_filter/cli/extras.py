"""Which extra of the package holds what a verb lacks: the base installation has what running the filter needs."""

from __future__ import annotations

from fraud_filter.errors import UsageError

#: extra -> the modules that its packages bring, by the names that they are imported by.
EXTRAS = {
    "generate": ("duckdb", "faker"),
    "audit": ("duckdb", "pyarrow"),
    "stack": ("bcrypt", "docker", "jwt"),
    "lab": ("jinja2", "matplotlib"),
}
#: The extra that holds all others, for the verbs that prove the filter.
_ALL = "lab"


def lacking(verb: str, error: ModuleNotFoundError, *, proves: bool) -> UsageError | None:
    """What to say where `verb` could not import a module; None: no extra has it, and the installation is broken.

    Args:
        verb: the verb that was called, after its groups.
        error: what Python said.
        proves: whether the verb is one of the lab's.
    """
    module = (error.name or "").partition(".")[0]
    holding = [extra for extra, modules in EXTRAS.items() if module in modules]
    if not holding:
        return None
    extra = _ALL if proves else verb if verb in holding else holding[0]
    return UsageError(
        f"`fraud-filter {verb}` needs the package {module}, which is not installed: pip install 'fraud-filter[{extra}]'"
    )
