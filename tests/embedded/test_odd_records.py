"""Tools that read stand any record: they show it or count it, and end in no stack trace."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from fraud_filter import schema as layout
from fraud_filter.cli.main import cli
from running import GOOD, Stage

_ACTS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
_HOSTILE = b"\x1b]0;owned\x07\x1b[2J\r\n\x00\xe2\x80\xae"
_GOOD = json.dumps(GOOD).encode()
_VALUES = (
    None, b"", b"\x00", b"\xff\xfe", _HOSTILE, b"null", b"[]", b"1e400", b"NaN", b"9" * 5000, b"[" * 100_000,
    b'{"a":' * 100_000, b"\xef\xbb\xbf" + _GOOD, _GOOD[:-1], b"x" * 900_000,
    *(_GOOD.replace(b"12.5", amount) for amount in (b"1e400", b"-1e400", b"1e-400", b'"x"', b"9" * 5000, b"[1]")),
    *(_GOOD.replace(b"2026-03-01T12:00:00Z", time) for time in (b"-290308-12-21T20:00:00Z", b"99999-01-01")),
    _GOOD[:-1] + b', "rules": ["large"]}', _GOOD[:-1] + b', "rules": "\\ud800"}', _GOOD[:-1] + b', "rules": [1, null]}',
)  # fmt: skip
_NUMBERS = (None, b"", b"\xff", b"-1", b"9" * 5000, b"1e5", b"1.5", b"\x00", b"9223372036854775808", _HOSTILE)
_OWN = (layout.HEADER_TOPIC, layout.HEADER_PARTITION, layout.HEADER_OFFSET, layout.HEADER_TIMESTAMP)


def _headers(topic: str) -> Iterator[list[tuple[str, str | bytes | None]]]:
    right: dict[str, str | bytes | None] = dict(zip(_OWN, (topic.encode(), b"0", b"0", b"0"), strict=True))
    yield []
    yield [*right.items()]
    yield [*right.items(), *right.items(), ("x", None), ("x", _HOSTILE), (_HOSTILE[:3].decode(), b"\xff")]
    for name in _OWN:
        yield [item for item in right.items() if item[0] != name]
        for number in _NUMBERS:
            yield [*(right | {name: number}).items()]
    for name in (layout.HEADER_REASON, layout.HEADER_RULES, layout.HEADER_MODEL, layout.HEADER_TRUNCATED):
        yield [*right.items(), (name, _HOSTILE)]


@pytest.fixture
def odd(stage: Stage) -> Stage:
    producer = Producer({"bootstrap.servers": stage.address})
    for value in _VALUES:
        for key in (None, b"", _HOSTILE + b"\xff"):
            producer.produce(stage.input, value, key)
    for topic in (stage.flagged, stage.rejected):
        for headers in _headers(stage.input):
            producer.produce(topic, _GOOD, None, headers=headers)
        for value in _VALUES:
            producer.produce(topic, value, _HOSTILE, headers=[*_headers(stage.input)][1])
    assert producer.flush(30) == 0
    return stage


def test_tools_that_read_stand_any_record(odd: Stage) -> None:
    every = ["--topic", "input", "--topic", "flagged", "--topic", "rejected", "--from-beginning"]
    for words, code in (
        (["tail", *every], None),
        (["tail", *every, "--json"], None),
        (["audit", "--settle", "0"], 1),
    ):
        done = CliRunner().invoke(cli, words, env=odd.environment(), standalone_mode=False)
        assert done.exception is None, (words, done.exception)
        assert done.return_value == code, words
        assert not _ACTS.search(done.output), words
        if words[0] == "tail" and "--json" in words:
            assert len([json.loads(line, parse_int=str) for line in done.output.splitlines()]) > 200
