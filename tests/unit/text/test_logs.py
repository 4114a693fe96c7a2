"""The filter's log lines: fields with their values as they were given, and no value that passes for another field."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from fraud_filter.text.logs import formatter, get_logger

NAME = "fraud_filter.tests.logs"
HOSTILE = 'x level=INFO\n\x1b[2J event=healthy "'


def written(log_format: str, log: Callable[[], Any]) -> str:
    """What the format writes of that which `log` logs."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter(log_format))
    logging.getLogger(NAME).addHandler(handler)
    try:
        log()
    finally:
        logging.getLogger(NAME).removeHandler(handler)
    return stream.getvalue().removesuffix("\n")


def as_object(log: Callable[[], Any]) -> dict[str, Any]:
    text = written("json", log)
    assert text.isascii()
    assert text.isprintable()
    found: dict[str, Any] = json.loads(text)
    return found


def fail() -> None:
    try:
        raise ValueError("no")
    except ValueError:
        get_logger(NAME).exception("monitor_failed", query="q")


def test_fields_stand_beside_time_level_logger_and_message() -> None:
    found = as_object(lambda: get_logger(NAME).warning("started", mode="continuous", partitions=2, seconds=1.2))
    assert found.pop("time").endswith("Z")
    assert found == {
        "level": "WARNING",
        "logger": NAME,
        "event": "started",
        "mode": "continuous",
        "partitions": 2,
        "seconds": 1.2,
        "message": "event=started mode=continuous partitions=2 seconds=1.2",
    }


def test_a_value_is_no_other_field() -> None:
    found = as_object(lambda: get_logger(NAME).warning("lost", lost=HOSTILE))
    assert (found["event"], found["level"], found["lost"]) == ("lost", "WARNING", HOSTILE)
    line = written("text", lambda: get_logger(NAME).warning("lost", lost=HOSTILE))
    assert line.endswith(r' level=WARNING event=lost lost="x level=INFO\n\x1b[2J event=healthy \""')


def test_an_error_as_a_value_is_its_text() -> None:
    assert as_object(lambda: get_logger(NAME).warning("failed", reason=ValueError("no")))["reason"] == "no"


@pytest.mark.parametrize(("message", "values"), [("Closing down %s", ("clientserver",)), ("100 %", ()), (5, ())])
def test_a_message_of_another_library_is_a_message(message: object, values: tuple[object, ...]) -> None:
    found = as_object(lambda: logging.getLogger(NAME).warning(message, *values))
    assert set(found) == {"time", "level", "logger", "message"}


def test_a_stack_trace_is_within_the_object_and_below_the_line() -> None:
    assert "ValueError: no" in as_object(fail)["exception"]
    first, *others = written("text", fail).splitlines()
    assert first.endswith("level=ERROR event=monitor_failed query=q")
    assert others[-1] == "ValueError: no"
