"""What a flagged record says of its decision; anything may stand there, as others may write to the topic."""

from __future__ import annotations

import json

from fraud_filter.schema import RULES_FIELD, SCORE


def read_flagged(value: bytes | None) -> tuple[list[str], float | None]:
    """The rules that the record names, and its score from 0 to 1; none and None where they can't be read."""
    try:
        told = json.loads(value or b"")
    except (ValueError, RecursionError):
        return [], None
    if not isinstance(told, dict):
        return [], None
    rules, score = told.get(RULES_FIELD), told.get(SCORE)
    named = [rule for rule in rules if isinstance(rule, str)] if isinstance(rules, list) else []
    return named, score if isinstance(score, float | int) and 0 <= score <= 1 else None
