"""How a record of Kafka is shown: nothing of it is lost in JSON, and no character of it acts on a terminal."""

from __future__ import annotations

import json

import pytest

from fraud_filter.tail import Record, json_line, lines

HEADERS = (
    ("source.topic", b"payments"),
    ("source.partition", b"1"),
    ("source.offset", b"7"),
    ("source.timestamp", b"1764017941120"),
)


def record(
    value: bytes | None, key: bytes | None = b"card-1", headers: tuple[tuple[str, bytes | None], ...] = HEADERS
) -> Record:
    return Record("payments.flagged", 0, 42, 1764017941123, key, value, headers)


def test_a_reader_sees_place_time_latency_key_headers_and_value() -> None:
    assert lines(record(b'{"amount": 12.50}')).splitlines() == [
        "payments.flagged, partition 0, offset 42, 2025-11-24T20:59:01.123Z, 3 ms after its record",
        "  key    card-1",
        "  header source.topic      payments",
        "  header source.partition  1",
        "  header source.offset     7",
        "  header source.timestamp  1764017941120",
        '  value  {"amount": 12.50}',
    ]


def test_a_reader_is_told_of_what_is_not_there() -> None:
    assert lines(record(None, None, ())).splitlines() == [
        "payments.flagged, partition 0, offset 42, 2025-11-24T20:59:01.123Z",
        "  key    none",
        "  value  none",
    ]


def test_nothing_acts_on_a_terminal() -> None:
    shown = lines(record(b"\x1b[2J\xff\r", b"\x1b[31m", (("a\x1bb", b"\x07"), ("empty", None))))
    assert shown.replace("\n", "").isprintable()
    assert r"\x1b[2J\xff" in shown
    assert "header empty  none" in shown


def test_json_has_the_place_the_headers_and_the_latency() -> None:
    assert json.loads(json_line(record(b'{"a": 1}'))) == {
        "topic": "payments.flagged",
        "partition": 0,
        "offset": 42,
        "timestamp": "2025-11-24T20:59:01.123Z",
        "latency_ms": 3,
        "key": "card-1",
        "headers": {name: value.decode() for name, value in HEADERS},
        "value": {"a": 1},
    }


@pytest.mark.parametrize(
    "text",
    [
        '{"amount": 12345678901234567.890}',
        '{"n": ' + "9" * 5000 + "}",
        '{"name": "\u00e9\u202e\x7f\U0001f600", "n": [1,\r\n\t2]}',
        "[]",
    ],
)
def test_a_value_that_is_json_stands_in_its_line_as_it_was_written(text: str) -> None:
    line = json_line(record(text.encode()))
    assert line.isascii()
    assert line.isprintable()
    found = json.loads(line, parse_float=str, parse_int=str)["value"]
    assert found == json.loads(text, parse_float=str, parse_int=str)


@pytest.mark.parametrize(
    ("value", "name", "shown"),
    [
        (b"no json", "value_text", "no json"),
        (b'{"a": 1, "a": 2}', "value_text", '{"a": 1, "a": 2}'),
        (b'{"a": {"b": 1, "b": 2}}', "value_text", '{"a": {"b": 1, "b": 2}}'),
        (b'{"a": NaN}', "value_text", '{"a": NaN}'),
        (b"[" * 100_000, "value_text", "[" * 100_000),
        (b"", "value_text", ""),
        (b"\xff\x00", "value_base64", "/wA="),
        (None, "value", None),
    ],
)
def test_what_json_would_lose_is_a_text(value: bytes | None, name: str, shown: str | None) -> None:
    found = json.loads(json_line(record(value)))
    assert found[name] == shown
    assert [each for each in found if each.startswith("value")] == [name]


def test_a_key_that_is_no_text_is_base64() -> None:
    found = json.loads(json_line(record(b"{}", b"\xff")))
    assert found["key_base64"] == "/w=="
    assert "key" not in found


@pytest.mark.parametrize("stamped", [-1, 10**15, 17 * 10**17, 2**63 - 1, -(2**63)])
def test_any_time_that_a_producer_stamps_is_told(stamped: int) -> None:
    record = Record("payments", 0, 7, stamped, None, None, ())
    told = json.loads(json_line(record))["timestamp"]
    assert told in lines(record)
    assert told == ("1969-12-31T23:59:59.999Z" if stamped == -1 else told)
    assert str(stamped) in told or told.endswith("Z")
