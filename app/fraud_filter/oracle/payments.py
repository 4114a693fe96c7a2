"""Reads the value of a record as a payment, or says why it must be rejected. Knows the schema, not the rules."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple, NoReturn

from fraud_filter import schema as layout
from fraud_filter.oracle.fields import FieldReader, UnusualError, field_reader
from fraud_filter.oracle.json_reader import (
    MAX_DIGITS,
    MAX_NAME,
    DuplicateKeyError,
    MalformedJsonError,
    Token,
    TrailingContentError,
    has_endless_number,
    read_members,
)
from fraud_filter.schema import PaymentSchema

#: What Python's json and Spark read differently: halves of surrogate pairs, numbers and names without end.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LONG_NUMBER = re.compile(rb"[-+.eE0-9]{%d}" % MAX_DIGITS)
_LONG_EXPONENT = re.compile(rb"[eE][-+]?[0-9]{9}")
#: A surrogate written as UTF-8: Java's decoder replaces it by one character, Python's by two or three.
_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


class Reading(NamedTuple):
    """A payment's fields in the order of the schema, or the reason of its rejection (a REASON_* value)."""

    reason: str | None
    fields: tuple[Any, ...]


_EMPTY = Reading(layout.REASON_EMPTY, ())
_MALFORMED = Reading(layout.REASON_MALFORMED, ())
_TRAILING = Reading(layout.REASON_TRAILING, ())
_DUPLICATE = Reading(layout.REASON_DUPLICATE, ())
_NO_SCHEMA_ID = Reading(layout.REASON_NO_SCHEMA_ID, ())
_WRONG_TYPE = Reading(layout.REASON_WRONG_TYPE, ())
_MISSING = Reading(layout.REASON_MISSING, ())


class PaymentReader:
    """Reads payments of one schema as the query's `from_json` does (PERMISSIVE mode, ANSI off, UTC).

    Raises:
        UsageError: the schema has a field of a type that the audit does not know.
    """

    def __init__(self, schema: PaymentSchema) -> None:
        self.readers: tuple[FieldReader, ...] = tuple(field_reader(field) for field in schema.fields)
        self._quick: list[tuple[str, Callable[[Any], Any]]] = [(r.field.name, r.quick) for r in self.readers]
        self._index = {field.name: at for at, field in enumerate(schema.fields)}
        self._required = tuple(at for at, field in enumerate(schema.fields) if field.required)
        self._has_prefix = schema.has_prefix
        self._has_decimals = any(field.is_decimal for field in schema.fields)
        self._decode = json.JSONDecoder(
            object_pairs_hook=_unique, parse_constant=_unusual, parse_float=Decimal if self._has_decimals else None
        ).decode

    def read(self, value: bytes | None) -> Reading:
        """The payment in the value of a record."""
        if value is None:
            return _EMPTY
        if self._has_prefix:
            if value[:1] != layout.PREFIX_BEGIN or len(value) < layout.PREFIX_BYTES:
                return _NO_SCHEMA_ID
            value = value[layout.PREFIX_BYTES :]
        try:
            fields = self._read_quickly(value)
        except (ValueError, ArithmeticError, RecursionError):
            return self.read_thoroughly(value)
        return self._checked(fields)

    def read_flagged(self, value: bytes) -> tuple[Reading, tuple[str, ...]]:
        """The payment in a flagged record, and the names of the rules that it says matched.

        Raises:
            ValueError: the value is not a JSON object with a list of rule names.
        """
        document = json.loads(value)
        rules = document.get(layout.RULES_FIELD) if isinstance(document, dict) else None
        if not isinstance(rules, list) or not all(isinstance(rule, str) for rule in rules):
            raise ValueError(f"no list of rule names under {layout.RULES_FIELD!r}")
        return self.read(value), tuple(rules)

    def read_thoroughly(self, value: bytes) -> Reading:
        """As `read`, without a prefix and the quick way: what Spark's reader does, step by step."""
        text = _ENCODED_SURROGATE.sub("\N{REPLACEMENT CHARACTER}".encode(), value).decode(errors="replace")
        try:
            members = read_members(text)
        except MalformedJsonError:
            return _MALFORMED
        except TrailingContentError:
            return _TRAILING
        except DuplicateKeyError:
            return _DUPLICATE
        if members is None:
            return _EMPTY
        if self._has_decimals and has_endless_number(text):
            return _WRONG_TYPE
        try:
            return self._checked(self._convert(members))
        except (ValueError, ArithmeticError):  # the latter from an exponent that no Decimal can hold
            return _WRONG_TYPE

    def _read_quickly(self, value: bytes) -> list[Any]:
        if b"\\u" in value and _SURROGATE.search(value):
            raise UnusualError
        if len(value) > MAX_DIGITS and (len(value) > MAX_NAME or _LONG_NUMBER.search(value)):
            raise UnusualError
        if self._has_decimals and _LONG_EXPONENT.search(value):
            raise UnusualError
        document = self._decode(value.decode())
        if type(document) is not dict:
            raise UnusualError
        get = document.get
        return [None if (given := get(name)) is None else read(given) for name, read in self._quick]

    def _convert(self, members: list[tuple[str, Token]]) -> list[Any]:
        fields: list[Any] = [None] * len(self.readers)
        for name, token in members:
            at = self._index.get(name)
            if at is not None:
                fields[at] = None if token.kind == "null" else self.readers[at].thorough(token)
        return fields

    def _checked(self, fields: list[Any]) -> Reading:
        for at in self._required:
            if fields[at] is None:
                return _MISSING
        return Reading(None, tuple(fields))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise UnusualError
    return document


def _unusual(_: str) -> NoReturn:
    raise UnusualError
