"""Reads the headers that every written record carries (layout in `schema`). Knows no client library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fraud_filter import schema as layout

Headers = Iterable[tuple[str, bytes | None]]


class Source(NamedTuple):
    """Where a decided payment was read; `timestamp_ms` is its append time in milliseconds since 1970.

    `reason` is the reject.reason header of a rejected record, else empty; `topic_id`, and the `version` of
    the rules and of the `model` that decided, are empty where none was written. `truncated` are features whose window
    may be cut short.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    reason: str
    topic_id: str = ""
    version: str = ""
    model: str = ""
    truncated: tuple[str, ...] = ()


def read_source(headers: Headers | None) -> Source | None:
    """The source that the headers tell; None when one of them is missing or can't be read."""
    found = dict(headers or ())
    try:
        return Source(
            found[layout.HEADER_TOPIC].decode(),  # type: ignore[union-attr]
            int(found[layout.HEADER_PARTITION]),  # type: ignore[arg-type]
            int(found[layout.HEADER_OFFSET]),  # type: ignore[arg-type]
            int(found[layout.HEADER_TIMESTAMP]),  # type: ignore[arg-type]
            _text(found, layout.HEADER_REASON),
            _text(found, layout.HEADER_TOPIC_ID),
            _text(found, layout.HEADER_RULES),
            _text(found, layout.HEADER_MODEL),
            tuple(filter(None, _text(found, layout.HEADER_TRUNCATED).split(","))),
        )
    except (KeyError, ValueError, TypeError, AttributeError):
        return None


def _text(found: Mapping[str, bytes | None], name: str) -> str:
    return (found.get(name) or b"").decode(errors="replace")
