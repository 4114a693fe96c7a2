"""Made-up records of any schema: by type alone, with a known share of malformed ones, the same for a seed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fraud_filter.errors import UsageError
from fraud_filter.generator.source import Batch, Pace, encoded
from fraud_filter.schema import Field, PaymentSchema
from fraud_filter.text.ddl import Kind

Choice = TypeVar("Choice")

Spoiler = Callable[[bytes, np.random.Generator], bytes | None]

#: A value that can't be converted, by the field's type. Every text is a valid STRING.
_WRONG = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN"), "a lot"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_NTZ", "DATE"), "yesterday"),
}


class Malformer:
    """Spoils values in one of several kinds, evenly chosen; `kinds` names them."""

    def __init__(self, schema: PaymentSchema, made: frozenset[str]) -> None:
        """`made` are the fields that the payments to spoil carry."""
        self._required = [name for name in schema.required if name in made]
        self._typed = [
            (field.name, _WRONG[field.kind.name])
            for field in schema.fields
            if field.name in made and field.kind.name in _WRONG
        ]
        self.kinds: dict[str, Spoiler] = {
            "truncated-json": _truncated,
            "not-json": _not_json,
            "not-an-object": _not_an_object,
            "invalid-utf-8": _invalid_utf8,
            "empty-value": _empty,
            "null-value": _null,
        }
        if self._required:
            self.kinds |= {"missing-field": self._missing, "null-field": self._null_field}
        if self._typed:
            self.kinds["wrong-type"] = self._wrong_type
        self._spoilers = list(self.kinds.values())

    def spoil(self, value: bytes, rng: np.random.Generator) -> bytes | None:
        """The payment `value` (JSON), spoiled."""
        return self._spoilers[int(rng.integers(len(self._spoilers)))](value, rng)

    def _missing(self, value: bytes, rng: np.random.Generator) -> bytes:
        payment = json.loads(value)
        del payment[_one_of(rng, self._required)]
        return encoded(payment)

    def _null_field(self, value: bytes, rng: np.random.Generator) -> bytes:
        return encoded(json.loads(value) | {_one_of(rng, self._required): None})

    def _wrong_type(self, value: bytes, rng: np.random.Generator) -> bytes:
        name, wrong = _one_of(rng, self._typed)
        return encoded(json.loads(value) | {name: wrong})


def _one_of(rng: np.random.Generator, choices: Sequence[Choice]) -> Choice:
    return choices[int(rng.integers(len(choices)))]


def _truncated(value: bytes, rng: np.random.Generator) -> bytes:
    # At most two thirds stay: a required field is lost, whatever a lenient parser makes of the rest.
    return value[: int(rng.integers(1, 2 * len(value) // 3))]


def _not_json(value: bytes, rng: np.random.Generator) -> bytes:  # noqa: ARG001
    return _one_of(rng, (b"HTTP/1.1 502 Bad Gateway", b"<payment><amount>12.50</amount></payment>", b"card;amount"))


def _not_an_object(value: bytes, rng: np.random.Generator) -> bytes:  # noqa: ARG001
    return _one_of(rng, (b'"payment"', b"42", b"null", b"[]"))


def _invalid_utf8(value: bytes, rng: np.random.Generator) -> bytes:  # noqa: ARG001
    # In front of the JSON, not within a text: a parser that replaces bad bytes must still refuse it.
    return b"\xc3\x28" + value


def _empty(value: bytes, rng: np.random.Generator) -> bytes:  # noqa: ARG001
    return b""


def _null(value: bytes, rng: np.random.Generator) -> None:  # noqa: ARG001
    return None


#: One value for each time (ms since 1970).
Drawn = list[Any]

_Draw = Callable[[np.random.Generator, NDArray[np.int64]], Drawn]

#: Numbers and texts are one of so many: few enough that each comes again, as cards and customers do.
_VALUES = 10_000

#: Entries of an array or a map at most, and how often a field that may be null is.
_ENTRIES, _NULLS = 3, 0.1

_WHOLE = {"TINYINT": 100, "SMALLINT": _VALUES, "INT": _VALUES, "BIGINT": _VALUES}


class ByType:
    """Draws the given fields; the same values for the same generator of random numbers, but for times."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._required = {field.name: field.required for field in fields}
        self._draws = {field.name: _draw(field.name, field.kind) for field in fields}

    def records(self, rng: np.random.Generator, times_ms: NDArray[np.int64]) -> list[dict[str, Any]]:
        """A record for each time. What may be null is so in one of ten; a time is the record's, in UTC."""
        columns = []
        for name, draw in self._draws.items():
            values = draw(rng, times_ms)
            if not self._required[name]:
                null = rng.random(len(values)) < _NULLS
                values = [None if absent else value for value, absent in zip(values, null.tolist(), strict=True)]
            columns.append(values)
        return [dict(zip(self._draws, row, strict=True)) for row in zip(*columns, strict=True)]


def _draw(name: str, kind: Kind) -> _Draw:
    parts = {part: _draw(part, of) for part, of in kind.parts}
    if kind.name == "STRUCT":
        return _struct(parts)
    if kind.name == "ARRAY":
        return _array(parts[""])
    if kind.name == "MAP":
        return _map(_draw("", Kind("STRING")), parts[""])
    return _scalar(name, kind)


def _scalar(name: str, kind: Kind) -> _Draw:
    word = kind.name
    if word in _WHOLE:
        return lambda rng, times: rng.integers(_WHOLE[word], size=len(times)).tolist()
    if word in ("FLOAT", "DOUBLE"):
        return lambda rng, times: (rng.integers(_VALUES * 100, size=len(times)) / 100).tolist()
    if word == "DECIMAL":
        places = min(kind.scale, 2)
        most = min(10 ** (kind.precision - kind.scale), _VALUES) * 10**places
        return lambda rng, times: (rng.integers(most, size=len(times)) / 10**places).tolist()
    if word == "BOOLEAN":
        return lambda rng, times: (rng.random(len(times)) < 0.5).tolist()
    if word == "STRING":
        return lambda rng, times: [f"{name}-{number}" for number in rng.integers(_VALUES, size=len(times)).tolist()]
    if word == "TIMESTAMP":
        return lambda _rng, times: [f"{text}Z" for text in _texts(times, "ms")]
    return lambda _rng, times: _texts(times, "D" if word == "DATE" else "ms")


def _texts(times: NDArray[np.int64], unit: Any) -> list[str]:
    texts: list[str] = np.datetime_as_string(times.astype("datetime64[ms]"), unit=unit).tolist()
    return texts


def _array(draw: _Draw) -> _Draw:
    def drawn(rng: np.random.Generator, times: NDArray[np.int64]) -> Drawn:
        sizes = rng.integers(_ENTRIES + 1, size=len(times))
        entries = iter(draw(rng, np.repeat(times, sizes)))
        return [[next(entries) for _ in range(size)] for size in sizes.tolist()]

    return drawn


def _map(keys: _Draw, values: _Draw) -> _Draw:
    pairs = _array(_struct({"key": keys, "value": values}))
    return lambda rng, times: [{pair["key"]: pair["value"] for pair in row} for row in pairs(rng, times)]


def _struct(draws: dict[str, _Draw]) -> _Draw:
    def drawn(rng: np.random.Generator, times: NDArray[np.int64]) -> Drawn:
        columns = [draw(rng, times) for draw in draws.values()]
        return [dict(zip(draws, row, strict=True)) for row in zip(*columns, strict=True)]

    return drawn


#: Records drawn at once; part of what a seed means.
_BATCH = 200


class MadeRecords:
    """A source of made-up records at a given pace; it never ends. Which of them match a rule is not known.

    The key is the first STRING field that is required; without one, records have none.
    """

    def __init__(self, schema: PaymentSchema, pace: Pace, *, seed: int, malformed: float) -> None:
        """Takes the share of `malformed` records, 0 to 1.

        Raises:
            UsageError: the seed is negative.
        """
        if seed < 0:
            raise UsageError(f"--seed {seed} is not accepted: give a whole number, 0 or above")
        self._pace = pace
        self.seed = seed
        self._malformed = malformed
        self._fields = ByType(schema.fields)
        self._malformer = Malformer(schema, frozenset(field.name for field in schema.fields))
        texts = (field.name for field in schema.fields if field.required and field.type == "STRING")
        self._key = next(texts, None)

    def batches(self, start_ms: int) -> Iterator[Batch]:
        """See Source."""
        rng = np.random.default_rng([self.seed, 2])
        for first in itertools.count(0, _BATCH):
            due_s = self._pace.due_s(first, _BATCH)
            malformed = rng.random(len(due_s)) < self._malformed
            records = self._fields.records(rng, start_ms + (due_s * 1000).astype(np.int64))
            keys = [None if self._key is None else record[self._key].encode() for record in records]
            values: list[bytes | None] = [encoded(record) for record in records]
            for index in np.flatnonzero(malformed).tolist():
                values[index] = self._malformer.spoil(values[index] or b"", rng)
            yield Batch(due_s, keys, values, None, malformed)
