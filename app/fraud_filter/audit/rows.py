"""What the user's `expect` says of a record, and when two values of rows are the same."""

from __future__ import annotations

import json
import traceback
from typing import NamedTuple

from fraud_filter.audit.books import FAILED, PASS, ROW
from fraud_filter.query.user_query import Expect
from fraud_filter.records import Headers, Source, read_source
from fraud_filter.schema import HEADER_WRITER

NOT_TOLD = "what is lost or has a wrong value can't be told, as the query's module has no function expect(record)"


class Record(NamedTuple):
    """What `expect` gets: a record of the input; `timestamp_ms` is its append time in milliseconds since 1970."""

    key: bytes | None
    value: bytes | None
    partition: int
    offset: int
    timestamp_ms: int
    headers: list[tuple[str, bytes | None]]


def read_place(headers: Headers | None) -> Source | None:
    """The place of a row's record; other headers may be the user's own."""
    ours = [one for one in headers or () if one[0].startswith("source.") or one[0] == HEADER_WRITER]
    source = read_source(ours)
    return source and source._replace(decision=ROW)


def ask(expect: Expect, record: Record) -> tuple[str, bytes | str | None]:
    """What should become of a record: PASS; ROW, and its comparable value or None for any; FAILED, and why."""
    try:
        due = expect(record)
        if due is None or due is True:
            return PASS if due is None else ROW, None
        if isinstance(due, bytes | str):
            return ROW, comparable(due)
    except Exception as error:
        return FAILED, f"expect raises {traceback.format_exception_only(error)[-1].splitlines()[0]}"
    return FAILED, f"expect returns a {type(due).__name__}; it may return None, True, bytes or text"


def comparable(value: bytes | str | None) -> bytes | str | None:
    """The same of values that are the same JSON, as Python's json module reads it, in any order; else the bytes."""
    if value is None:
        return None
    try:
        return json.dumps(json.loads(value if isinstance(value, str) else value.decode()), sort_keys=True)
    except (ValueError, RecursionError):
        return value.encode() if isinstance(value, str) else value
