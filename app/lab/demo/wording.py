"""How problems are put in words, the same in the terminal and on the page."""

from __future__ import annotations

from lab.demo.result import ModeResult
from lab.harness.outcome import NOT_AUDITED


def describe_problem(result: ModeResult) -> str:
    """Why a mode does not count as passed, in one line; empty when it does.

    Of an error that quotes a log, that is what it says itself and the last line of the log.
    """
    if result.error is not None:
        first, *quoted = result.error.strip().splitlines()
        return f"{first.removesuffix('; its last lines:')}: {quoted[-1].strip()}" if quoted else first
    if result.ok:
        return ""
    if result.audit == NOT_AUDITED:
        return "was not audited"
    return f"the audit found {result.audit.lost} lost and {result.audit.unexpected} unexpected payments"
