"""Reads the value of a record as a payment, or says why it must be rejected. Knows the schema, not the rules."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple, NoReturn

from fraud_filter import schema as layout
from fraud_filter.oracle.fields import Read, field_reader
from fraud_filter.schema import PaymentSchema

_BLANK = " \t\r\n"
_NUMBER_RUN = re.compile(layout.NUMBER_RUN)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_FRACTION = re.compile(r"-?[0-9]+(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")
_NON_NUMBERS = {text: float(text) for text in ("NaN", "Infinity", "-Infinity")}


class Reading(NamedTuple):
    """A payment's fields in the order of the schema, or the reason of its rejection (a REASON_* value)."""

    reason: str | None
    fields: tuple[Any, ...] = ()


class PaymentReader:
    """Reads payments of one schema as the query does (`query/json_record`)."""

    def __init__(self, schema: PaymentSchema, results: Collection[str] = ()) -> None:
        """`results` are fields that the filter computed: a DOUBLE of these may be no number, which is a text then."""
        reads = ((field.name, field_reader(field.kind, schema.time_unit)) for field in schema.fields)
        self._reads = [(name, partial(_result, read) if name in results else read) for name, read in reads]
        self._required = tuple(at for at, field in enumerate(schema.fields) if field.required)
        self._has_prefix = schema.has_prefix
        fraction = _exact if schema.has_decimals else None
        #: Objects of the document that have a name twice.
        self._repeating: list[dict[str, Any]] = []
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object, parse_constant=_no_number, parse_float=fraction
        )

    def read(self, value: bytes | None) -> Reading:
        """The payment in the value of a record."""
        if value is None:
            return Reading(layout.REASON_EMPTY)
        if self._has_prefix:
            if value[:1] != layout.PREFIX_BEGIN or len(value) < layout.PREFIX_BYTES:
                return Reading(layout.REASON_NO_SCHEMA_ID)
            value = value[layout.PREFIX_BYTES :]
        reason, document = self._decode(value)
        return Reading(reason) if reason else self._payment(document)

    def read_flagged(self, value: bytes | None) -> tuple[tuple[Any, ...] | None, tuple[str, ...]]:
        """The fields in a flagged or approved record, and the names of the rules that it says matched; None for fields
        that can't be read: it is not what the filter writes.
        """
        _, document = self._decode(value or b"")
        rules = document.get(layout.RULES_FIELD)
        if not isinstance(rules, list) or not all(isinstance(rule, str) for rule in rules):
            return None, ()
        reason, fields = self._payment(document)
        return fields if reason is None else None, tuple(rules)

    def _payment(self, document: dict[str, Any]) -> Reading:
        get = document.get
        try:
            fields = [None if (given := get(name)) is None else read(given) for name, read in self._reads]
        except (ValueError, ArithmeticError):
            return Reading(layout.REASON_WRONG_TYPE)
        for at in self._required:
            if fields[at] is None:
                return Reading(layout.REASON_MISSING)
        return Reading(None, tuple(fields))

    def _decode(self, value: bytes) -> tuple[str | None, dict[str, Any]]:
        """Why a value is no JSON object that is taken, or None and the object."""
        self._repeating.clear()
        try:
            text = _text(value).lstrip(_BLANK)
            if not text:
                return layout.REASON_EMPTY, {}
            document, end = self._decoder.raw_decode(text)
            _check_levels(text[:end])
        except (ValueError, RecursionError):
            return layout.REASON_MALFORMED, {}
        if type(document) is not dict:
            return layout.REASON_MALFORMED, {}
        if text[end:].strip(_BLANK):
            return layout.REASON_TRAILING, {}
        return (layout.REASON_DUPLICATE, {}) if self._repeating else (None, document)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        document = dict(pairs)
        if len(document) != len(pairs):
            self._repeating.append(document)
        return document


def _text(value: bytes) -> str:
    text = value.decode()
    if len(text) >= layout.LONGEST_NUMBER and _NUMBER_RUN.search(text):
        raise ValueError("a number may be too long")
    return text


def _check_levels(text: str) -> None:
    """Of JSON."""
    if text.count("{") + text.count("[") <= layout.MOST_LEVELS:
        return
    level = 0
    for sign in re.findall(r"[\[{\]}]", _QUOTED.sub("", text)):
        level += 1 if sign in "[{" else -1
        if level > layout.MOST_LEVELS:
            raise ValueError("nested too deeply")


def _exact(text: str) -> Decimal:
    """A number with a fraction or an exponent; refused where Java's BigDecimal can't count its places."""
    match = _FRACTION.fullmatch(text)
    exponent = int(match[2] or 0) if match else 0
    places = len(match[1] or "") - exponent if match else 0
    if not all(-(2**31) <= count < 2**31 for count in (exponent, places)):
        raise ValueError("a number has more places than can be counted")
    return Decimal(text)


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"no JSON: {word}")


def _result(read: Read, value: Any) -> Any:
    return _NON_NUMBERS[value] if type(value) is str and value in _NON_NUMBERS else read(value)
