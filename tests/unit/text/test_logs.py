"""The filter's log lines as JSON: values as they were given, and no value that passes for another field."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest

from fraud_filter.text.logs import formatter


def line(message: object, *values: object, exc_info: Any = None) -> dict[str, Any]:
    record = logging.LogRecord("fraud_filter.supervisor", logging.WARNING, "f.py", 1, message, values, exc_info)
    record.created = 1764017941.123
    text = formatter("json").format(record)
    assert text.isascii()
    assert text.isprintable()
    found: dict[str, Any] = json.loads(text)
    return found


def test_fields_stand_beside_time_level_logger_and_message() -> None:
    assert line("event=started mode=%s partitions=%d seconds=%.1f", "continuous", 2, 1.25) == {
        "time": "2025-11-24T20:59:01.123Z",
        "level": "WARNING",
        "logger": "fraud_filter.supervisor",
        "event": "started",
        "mode": "continuous",
        "partitions": 2,
        "seconds": 1.25,
        "message": "event=started mode=continuous partitions=2 seconds=1.2",
    }


@pytest.mark.parametrize("template", ["event=lost lost=%s", "event=lost lost=%r", 'event=lost lost="%s"'])
def test_a_value_is_no_other_field(template: str) -> None:
    found = line(template, "x level=INFO\n\x1b[2J event=healthy")
    assert (found["event"], found["level"]) == ("lost", "WARNING")
    assert found["lost"] == "x level=INFO\n\x1b[2J event=healthy"


def test_a_text_around_a_value_stays() -> None:
    found = line('event=topic_takes_too_little topic=%s action="set max.message.bytes=%d on it"', "payments", 5)
    assert found["topic"] == "payments"
    assert found["action"] == "set max.message.bytes=5 on it"


def test_an_error_as_a_value_is_its_text() -> None:
    assert line("event=failed reason=%s", ValueError("no"))["reason"] == "no"


@pytest.mark.parametrize(("message", "values"), [("Closing down %s", ("clientserver",)), ("100 %", ()), (5, ())])
def test_a_message_of_another_program_is_a_message(message: object, values: tuple[object, ...]) -> None:
    found = line(message, *values)
    assert set(found) == {"time", "level", "logger", "message"}


def test_a_stack_trace_is_within_the_line() -> None:
    try:
        raise ValueError("no")
    except ValueError:
        found = line("event=monitor_failed query=%s", "q", exc_info=sys.exc_info())
    assert "ValueError: no" in found["exception"]


def test_text_is_as_before() -> None:
    record = logging.LogRecord("f", logging.INFO, "f.py", 1, "event=started mode=%s", ("x\x1b",), None)
    assert formatter("text").format(record).endswith(r" level=INFO event=started mode=x\x1b")
