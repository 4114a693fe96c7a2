"""Spoils payments in the ways real producers do: what comes out is never a valid payment."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from fraud_filter.generator.source import encoded
from fraud_filter.schema import PaymentSchema

Choice = TypeVar("Choice")
Spoiler = Callable[[bytes, np.random.Generator], bytes | None]

#: A value that can't be converted, by the first word of the field's type. Every text is a valid STRING.
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
            (field.name, _WRONG[field.type.split("(")[0]])
            for field in schema.fields
            if field.name in made and field.type.split("(")[0] in _WRONG
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
