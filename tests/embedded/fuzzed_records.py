"""Records that nobody meant to send, drawn by hypothesis, and the largest ones, made by hand."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from fraud_filter.schema import Field, PaymentSchema
from oracle_cases import field_texts
from running import GOOD

_T = TypeVar("_T")
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


#: Values drawn for each part of a record.
_POOL = 150
#: The largest record of a topic as Kafka makes it (max.message.bytes), and what a batch of one record needs of it.
_TOPIC_LIMIT = 1_048_588
_OVERHEAD = 100


def draw_records(schema: PaymentSchema, count: int, seed: int) -> list[Record]:
    """`count` records, the same for the same seed: hypothesis draws the parts, chance puts them together."""
    choose = random.Random(seed)
    texts = {
        field: [*field_texts(field), *_draw(_field_text(field), _POOL, seed), *_draw(_anything(), _POOL, seed + 1)]
        for field in schema.fields
    }
    whole = [value for strategy in _whole() for value in _draw(strategy, _POOL * 2, seed)]
    headers = _draw(_headers(), _POOL, seed)
    keys = [None, b"", b"\x00", b"card-1", b"\xff\xfe", *_draw(st.binary(max_size=20), _POOL, seed)]
    records = []
    for _ in range(count):
        value = choose.choice(whole) if choose.random() < 0.15 else _object(choose, texts)
        if value and choose.random() < 0.15:
            value = _damaged(choose, value)
        records.append(Record(choose.choice(keys), value, choose.choice(headers) if choose.random() < 0.1 else ()))
    return records


def _draw(strategy: st.SearchStrategy[_T], count: int, seed: int) -> list[_T]:
    """At most `count` different values."""
    drawn: list[_T] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count, database=None, derandomize=False, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @hypothesis.given(strategy)
    def collect(value: _T) -> None:
        drawn.append(value)

    collect()
    return list({repr(value): value for value in drawn}.values())


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


def _headers() -> st.SearchStrategy[tuple[tuple[str, bytes | None], ...]]:
    names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    return st.lists(st.tuples(names, st.none() | st.binary(max_size=8)), max_size=4).map(tuple)


def _whole() -> list[st.SearchStrategy[Any]]:
    """Values that are no payments: bytes, text, other JSON, nothing."""
    return [st.none() | st.binary(max_size=60), _any_text().map(_encode), _json()]


def _any_text() -> st.SearchStrategy[str]:
    """Lone surrogates included."""
    return st.text(st.characters(), max_size=20)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _json() -> st.SearchStrategy[bytes]:
    """Any JSON, as Python writes it."""
    scalars = st.none() | st.booleans() | st.integers() | _any_text()
    trees = st.recursive(scalars, lambda some: st.lists(some) | st.dictionaries(_any_text(), some), max_leaves=8)
    return st.builds(lambda tree, escaped: _encode(json.dumps(tree, ensure_ascii=escaped)), trees, st.booleans())


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


def _field_text(field: Field) -> st.SearchStrategy[str]:
    """What may stand as the value of a field."""
    found = [_anything(), _lengths(100_000).map(lambda depth: "[" * depth + "]" * depth)]
    if field.type != "STRING":
        found += [_endless(), _endless().map(_quoted)]
    if field.type in ("DOUBLE", "FLOAT"):
        found += [st.floats().map(json.dumps), st.floats().map(repr), st.integers().map(str)]
        found += [st.from_regex(r"-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?", fullmatch=True)]
    if "INT" in field.type:
        bits = {"TINYINT": 8, "SMALLINT": 16, "INT": 32}.get(field.type, 64)
        found += [st.integers(-(2**bits), 2**bits).map(str)]
    if field.type.startswith("DECIMAL"):
        found += [st.decimals(-(10**9), 10**9, places=places).map(str) for places in (0, 2, 3, 20)]
        found += [st.from_regex(r'"[+-]?[0-9,]{1,12}\.?[0-9]{0,4}([eE][+-]?[0-9]{1,2})?"', fullmatch=True)]
    if field.type.startswith(("TIMESTAMP", "DATE")):
        found += [st.datetimes().map(lambda at: _quoted(at.isoformat())), _almost_times()]
    return st.one_of(*found)


def _lengths(most: int) -> st.SearchStrategy[int]:
    return st.one_of(st.integers(1, 600), st.integers(1, most), st.sampled_from((499, 500, 501, 999, 1000, 1001)))


def _endless() -> st.SearchStrategy[str]:
    """Numbers of many digits, or with exponents beyond all measure."""
    exponent = st.from_regex(r"[eE][+-]?[0-9]{1,12}", fullmatch=True)
    digits = st.builds(lambda digit, length: digit * length, st.sampled_from("19"), _lengths(200_000))
    places = digits.map(lambda some: f"0.{some}") | digits.map(lambda some: f"0.{'0' * len(some)}1")
    few = st.from_regex(r"(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?", fullmatch=True)
    return st.builds("{}{}{}".format, st.sampled_from(("", "-")), few | few | digits | places, exponent | st.just(""))


def _almost_times() -> st.SearchStrategy[str]:
    zones = r"(Z|[+-][0-9]{1,2}(:?[0-9]{1,2}){0,2}| ?(UTC|GMT|UT)([+-][0-9:]{1,5})?| [A-Z][a-z]{2,6}/[A-Z][a-z]{2,6})?"
    clock = r"[0-9]{1,2}(:[0-9]{1,2}(:[0-9]{1,2}(\.[0-9]{0,9})?)?)?"
    return st.from_regex(
        rf"[+-]?[0-9]{{3,7}}(-[01]?[0-9](-[0-3]?[0-9]([T ]({clock}{zones})?)?)?)?", fullmatch=True
    ).map(_quoted)


def _anything() -> st.SearchStrategy[str]:
    """The text of any JSON value, and of some that are almost one."""
    number = st.from_regex(r"-?(0|[1-9][0-9]{0,4})(\.[0-9]{1,3})?([eE][+-]?[0-9])?", fullmatch=True)
    quoted = st.builds(lambda text, escaped: json.dumps(text, ensure_ascii=escaped), _any_text(), st.booleans())
    raw = _any_text().map(lambda text: f'"{text}"') | _any_text().map(lambda text: f"'{text}'")
    words = st.sampled_from(["null", "true", "false", "NaN", "-Infinity", "+INF", "nul", "", "{", "[", "]", ",", "\\"])
    escapes = st.from_regex(
        r'"(\\[bfnrtuxq"/\\]|\\u[0-9a-fA-F]{0,4}|\\ud[89a-f][0-9a-f]{2}|[a-z]){0,6}"', fullmatch=True
    )
    scalars = st.one_of(number, quoted, raw, words, escapes, st.integers().map(str))
    return st.recursive(
        scalars,
        lambda some: st.one_of(
            st.lists(some, max_size=3).map(lambda items: f"[{','.join(items)}]"),
            st.lists(st.tuples(quoted, some), max_size=3).map(
                lambda members: f"{{{','.join(f'{name} :{text}' for name, text in members)}}}"
            ),
        ),
        max_leaves=4,
    )


def _damaged(choose: random.Random, value: bytes) -> bytes:
    """Some bytes lost, changed or added, at one place."""
    at = choose.randint(0, len(value))
    return value[:at] + choose.randbytes(choose.randint(0, 3)) + value[at + choose.randint(0, 6) :]


def _quoted(text: Any) -> str:
    return f'"{text}"'
