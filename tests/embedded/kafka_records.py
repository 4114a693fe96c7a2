"""Records for the input topic: values with keys and headers by chance, and the largest ones, made by hand."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import NamedTuple

from running import GOOD

#: The largest record of a topic as Kafka makes it (max.message.bytes), and what a batch of one record needs of it.
_TOPIC_LIMIT = 1_048_588
_OVERHEAD = 100


class Record(NamedTuple):
    """One record for the input topic."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def with_keys(values: Sequence[bytes | None], choose: random.Random) -> list[Record]:
    """A record for each value, some with headers."""
    records = []
    for value in values:
        key = choose.choice((None, b"", b"\x00", b"card-1", b"\xff\xfe", choose.randbytes(20)))
        headers = tuple(("h" * n, choose.choice((None, b"", choose.randbytes(8)))) for n in range(choose.randint(0, 4)))
        records.append(Record(key, value, headers if choose.random() < 0.1 else ()))
    return records


def large_records() -> list[Record]:
    """Records near the limits of the topics, of Kafka's clients and of Spark's JSON parser."""
    most = _TOPIC_LIMIT - _OVERHEAD
    astral = "\N{PILE OF POO}".encode()  # becomes \\uD83D\\uDCA9 where a STRING field is given an array
    values = [
        *(b"x" * most, b"\xff" * most, b"\x00" * most, b" " * most, b"[" * most, b'{"a":' * (most // 5)),
        *(b"{" * 5000, b"[" * 5000 + b"]" * 5000, _payment(b"[" + b"[" * 5000 + b"]" * 5000 + b"]")),
        *(_payment(b"[" + b'{"a":' * depth + b"1" + b"}" * depth + b"]") for depth in (500, 900, 1500, 100_000)),
        *(_filled(b'"', fill, b'"', most) for fill in (b"x", b"\xff", b"\\\\", b"\\u0001", b"\\/", astral)),
        *(_filled(b"[", fill, b"0]", most) for fill in (b"1e6,", b"+INF,", b"[],", b'"\\"",', b"'',", b"-0,")),
        *(_filled(b'["', fill, b'"]', most) for fill in (b"x", b"\xff", b"\\\\", b'\\"', b"\\n", astral, b"'")),
        _filled(b"1", b"0", b"", most),
        b"{" + b"".join(b'"n%d":%d,' % (n, n) for n in range(60_000)) + _payment(b'"p"')[1:],
        b"{" + b'"merchant":null,' * 60_000 + _payment(b'"p"')[1:],
        b'{"merchant":1,' + b'"merchant":"x",' * 60_000 + _payment(b'"p"')[1:],
        _payment(b'"p"') + b" " * 1_000_000,
    ]  # fmt: skip
    records = [Record(b"large", value) for value in values]
    records += [
        Record(b"k" * most, None),
        Record(b"k" * 500_000, _payment(b'"p"')),
        Record(b"k" * 500_000, b"x" * 500_000),
    ]
    records += [Record(None, _payment(b'"p"'), tuple((f"h{n}", b"v" * 10) for n in range(20_000)))]
    records += [Record(None, b"x", (("source.topic", b"elsewhere"), ("source.offset", None), ("", b"\xff")) * 100)]
    return records


def oversized_records() -> list[Record]:
    """Compressed, these are small enough for a topic; as they are they are larger than any limit."""
    return [
        Record(b"huge", b"x" * 3_000_000),
        Record(b"huge", _filled(b'"', b"x", b'"', 20_000_000)),
        Record(b"k" * 2_000_000, _payment(b'"p"')),
        Record(b"k" * 2_000_000, None),
    ]


def _payment(merchant: bytes) -> bytes:
    """A payment that the shipped rules flag."""
    fields = {name: value for name, value in GOOD.items() if name != "merchant"} | {"amount": 6000}
    return json.dumps(fields).encode()[:-1] + b', "merchant":' + merchant + b"}"


def _filled(opening: bytes, fill: bytes, closing: bytes, size: int) -> bytes:
    """A payment of at most `size` bytes whose merchant is mostly `fill`."""
    room = size - len(_payment(opening + closing))
    return _payment(opening + fill * (room // len(fill)) + closing)
