"""Reads the headers that every written record carries (layout in `schema`). Knows no client library."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fraud_filter import schema as layout

Headers = Iterable[tuple[str, bytes | None]]


class Source(NamedTuple):
    """Where a decided payment was read; `timestamp_ms` is its append time in milliseconds since 1970.

    `reason` is the reject.reason header of a rejected record, else empty; `topic_id` is empty where none was written.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    reason: str
    topic_id: str = ""


def read_source(headers: Headers | None) -> Source | None:
    """The source that the headers tell; None when one of them is missing or can't be read."""
    found = dict(headers or ())
    try:
        return Source(
            found[layout.HEADER_TOPIC].decode(),  # type: ignore[union-attr]
            int(found[layout.HEADER_PARTITION]),  # type: ignore[arg-type]
            int(found[layout.HEADER_OFFSET]),  # type: ignore[arg-type]
            int(found[layout.HEADER_TIMESTAMP]),  # type: ignore[arg-type]
            (found.get(layout.HEADER_REASON) or b"").decode(errors="replace"),
            (found.get(layout.HEADER_TOPIC_ID) or b"").decode(errors="replace"),
        )
    except (KeyError, ValueError, TypeError, AttributeError):
        return None
