"""Records that nobody meant to send, made by chance of odd ones that are known, and the largest ones, made by hand."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from fraud_filter.schema import Field, PaymentSchema
from oracle_cases import field_texts, record_values
from running import GOOD

_NUMBERS = ("0", "-1", "100", "1.5", "-2.5e2", "1e-9")
_FITTING = {
    "STRING": ('""', '"a"', '"caf\\u00e9"', '"\\ud800"', '"2024-02-29"'),
    "BOOLEAN": ("true", "false"),
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"), ('"2024-02-29"', '"1969-12-31"', '"0001-01-01"')),
    "ARRAY": ("[]", '["a", ""]', '["\\ud83d\\ude00"]'),
    "MAP": ("{}", '{"a": 1}', '{"b": -1, "a": 0}'),
    "STRUCT": ("{}", '{"total": 1.25}', '{"items": [{"n": 1}, {"at": "2024-02-29T12:00:00.5Z"}], "x": null}'),
}


class Record(NamedTuple):
    """One record for the input topic."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


#: What chance puts between the pieces of two texts.
_BETWEEN = (
    *("", "", "", *"\"'\\-+.,:[]{} 01eTZ\x00\n\u00e9\u2028\ud800", "\\u", "\\u00", "\\ud83d", "E-"),
    *("9" * 40, "9" * 1000, "null", "true", "NaN", " UTC"),
)
#: Texts made of the odd ones of a field.
_MADE = 400
#: The largest record of a topic as Kafka makes it (max.message.bytes), and what a batch of one record needs of it.
_TOPIC_LIMIT = 1_048_588
_OVERHEAD = 100


def draw_records(schema: PaymentSchema, count: int, seed: int) -> list[Record]:
    """`count` records, the same for the same seed."""
    choose = random.Random(seed)
    every = [text for field in schema.fields for text in field_texts(field)]
    texts = {field: [*field_texts(field), *_spliced(choose, field_texts(field), every)] for field in schema.fields}
    whole = [None, *record_values(), *(choose.randbytes(choose.randint(1, 60)) for _ in range(_MADE))]
    whole += map(_encode, _spliced(choose, every, every))
    records = []
    for _ in range(count):
        value = choose.choice(whole) if choose.random() < 0.15 else _object(choose, texts)
        if value and choose.random() < 0.15:
            value = _damaged(choose, value)
        key = choose.choice((None, b"", b"\x00", b"card-1", b"\xff\xfe", choose.randbytes(20)))
        headers = tuple(("h" * n, choose.choice((None, b"", choose.randbytes(8)))) for n in range(choose.randint(0, 4)))
        records.append(Record(key, value, headers if choose.random() < 0.1 else ()))
    return records


def _spliced(choose: random.Random, texts: Sequence[str], others: Sequence[str]) -> list[str]:
    """The beginning of a text, and the end of it or of another one."""
    made = []
    for _ in range(_MADE):
        one = choose.choice(texts)
        other = one if choose.random() < 0.6 else choose.choice(others)
        at = choose.randint(0, len(one))
        end = at + choose.randint(-2, 3) if other is one else choose.randint(0, len(other))
        made.append(one[:at] + choose.choice(_BETWEEN) + other[max(end, 0) :])
    return made


def large_records() -> list[Record]:
    """Records near the limits of the topics, of Kafka's clients and of Spark's JSON parser."""
    most = _TOPIC_LIMIT - _OVERHEAD
    astral = "\N{PILE OF POO}".encode()  # becomes \\uD83D\\uDCA9 where a STRING field is given an array
    values = [
        *(b"x" * most, b"\xff" * most, b"\x00" * most, b" " * most, b"[" * most, b'{"a":' * (most // 5)),
        *(b"{" * 5000, b"[" * 5000 + b"]" * 5000, _payment(_array(b"[" * 5000 + b"]" * 5000))),
        *(_payment(_array(b'{"a":' * depth + b"1" + b"}" * depth)) for depth in (500, 900, 1500, 100_000)),
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


def _array(content: bytes) -> bytes:
    return b"[" + content + b"]"


def _filled(opening: bytes, fill: bytes, closing: bytes, size: int) -> bytes:
    """A payment of at most `size` bytes whose merchant is mostly `fill`."""
    room = size - len(_payment(opening + closing))
    return _payment(opening + fill * (room // len(fill)) + closing)


def _fitting(field: Field) -> Sequence[str]:
    """What the field takes."""
    kind = field.kind.name
    if kind in _FITTING:
        return _FITTING[kind]
    return _NUMBERS[: 3 if "INT" in kind else None]


def _encode(text: str) -> bytes:
    """Lone surrogates included."""
    return text.encode("utf-8", "surrogatepass")


def _object(choose: random.Random, texts: dict[Field, list[str]]) -> bytes:
    """An object with the schema's fields: some odd, some missing, some twice, some that the schema does not have."""
    members = []
    for field in texts:
        if choose.random() > (0.02 if field.required else 0.4):
            regular = json.dumps(GOOD[field.name]) if field.name in GOOD else "null"
            members.append((_quoted(field.name), regular))
    for _ in range(choose.choice((0, 1, 1, 1, 2, 3))):
        field = choose.choice(list(texts))
        text = choose.choice(_fitting(field) if choose.random() < 0.6 else texts[field])
        name = _quoted(field.name) if choose.random() < 0.9 else choose.choice((text, "'amount'", '"Amount"', '""'))
        if choose.random() < 0.8:
            members = [(other, value) for other, value in members if other != name]
        members.insert(choose.randint(0, len(members)), (name, text))
    if choose.random() < 0.2:
        choose.shuffle(members)
    space = choose.choice(("", "", " ", "\n\t", "\r"))
    return _encode(f"{space}{{{','.join(f'{space}{name}:{space}{text}' for name, text in members)}}}{space}")


def _damaged(choose: random.Random, value: bytes) -> bytes:
    """Some bytes lost, changed or added, at one place."""
    at = choose.randint(0, len(value))
    return value[:at] + choose.randbytes(choose.randint(0, 3)) + value[at + choose.randint(0, 6) :]


def _quoted(text: Any) -> str:
    return f'"{text}"'
