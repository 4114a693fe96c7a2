"""Turns the JSON value of one field into the value that Spark would give it, by the field's type in payment.ddl.

For each type there are two readers that must agree: a quick one for what Python's `json` gives for ordinary records,
which raises `UnusualError` whenever it is in doubt, and the thorough one for `json_reader` tokens, which decides.
Neither is given null.

Values: STRING str, BOOLEAN bool, whole numbers int, DOUBLE and FLOAT float, DECIMAL Decimal with the type's scale,
TIMESTAMP int microseconds since 1970 in UTC, DATE int days since 1970.
"""

from __future__ import annotations

import decimal
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from fraud_filter.config import named
from fraud_filter.errors import UsageError
from fraud_filter.oracle.json_reader import Token, replace_surrogates, written
from fraud_filter.oracle.times import SECOND_US, date_days, taken_us, timestamp_us
from fraud_filter.schema import ENDLESS_EXPONENT, LONGEST_DECIMAL, Field

#: Bits of the whole-number types.
WHOLE = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_INFINITE = float("inf")
#: Spellings that Spark takes for a float, in quotes; json_reader lets the same ones through without quotes.
_NON_NUMBERS = {
    "NaN": float("nan"),
    **dict.fromkeys(("Infinity", "+Infinity", "+INF"), _INFINITE),
    **dict.fromkeys(("-Infinity", "-INF"), -_INFINITE),
}
_DECIMAL_TYPE = re.compile(r"DECIMAL(?:\((\d+)(?:, ?(\d+))?\))?")
_DECIMAL_TEXT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_ENDLESS = re.compile(ENDLESS_EXPONENT)
_LARGE_EXPONENT = 900
_EXACT = decimal.Context(prec=5 * LONGEST_DECIMAL, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)

Quick: TypeAlias = Callable[[Any], Any]
Thorough: TypeAlias = Callable[[Token], Any]


class UnusualError(ValueError):
    """The quick reader leaves this value to the thorough one."""


class WrongTypeError(ValueError):
    """Spark can't give the field this value: the payment is rejected."""


@dataclass(frozen=True)
class FieldReader:
    """How one field is read. `quick` takes a value of Python's `json`, `thorough` a token."""

    field: Field
    quick: Quick
    thorough: Thorough
    arrow_type: Any


def field_reader(field: Field) -> FieldReader:
    """The reader of a field.

    Raises:
        UsageError: the audit does not know the type.
    """
    decimal_type = _DECIMAL_TYPE.fullmatch(field.type)
    if decimal_type:
        precision, scale = int(decimal_type[1] or 10), int(decimal_type[2] or 0)
        quick: Quick = partial(_quick_decimal, precision, scale)
        # as wide as possible: DuckDB then multiplies without overflow, as Spark does by widening the type
        return FieldReader(field, quick, partial(_decimal, precision, scale), pa.decimal128(38, scale))
    if field.type not in _TYPES:
        raise UsageError(
            f"{named('payment_schema')}: the audit can't check the field {field.name!r} of type {field.type}; it knows "
            f"{', '.join(_TYPES)} and DECIMAL"
        )
    return FieldReader(field, *_TYPES[field.type])


# -- quick readers


def _quick_same(kind: type, value: Any) -> Any:
    if type(value) is kind:
        return value
    raise UnusualError


def _quick_double(value: Any) -> float:
    if type(value) is float:
        return value
    if (type(value) is int and -(2**53) < value < 2**53) or type(value) is Decimal:
        return float(value)
    raise UnusualError


def _quick_int(limit: int, value: Any) -> Any:
    if type(value) is int and -limit <= value < limit:
        return value
    raise UnusualError


def _quick_decimal(precision: int, scale: int, value: Any) -> Any:
    if type(value) is int or (type(value) is Decimal and abs(value.adjusted()) < _LARGE_EXPONENT):
        return _rounded(Decimal(value), precision, scale)
    raise UnusualError


def _quick_time(read: Callable[[str], int], value: Any) -> int:
    if type(value) is str:
        return read(value)
    raise UnusualError


# -- thorough readers


def _string(token: Token) -> str:
    return replace_surrogates(token.text) if token.kind == "string" else written(token)


def _boolean(token: Token) -> bool:
    if token.kind not in ("true", "false"):
        raise WrongTypeError
    return token.kind == "true"


def _double(token: Token) -> float:
    if token.kind in ("int", "float"):
        number = float(token.text)
        return 0.0 if token.kind == "int" and number == 0 else number  # -0 is a whole number first
    if token.kind in ("string", "word") and token.text in _NON_NUMBERS:
        return _NON_NUMBERS[token.text]
    raise WrongTypeError


def _int(bits: int, token: Token) -> int:
    if token.kind != "int":
        raise WrongTypeError
    number = int(token.text)
    limit: int = 2 ** (bits - 1)
    if bits == 8 and limit <= number < 2 * limit:
        return number - 2 * limit  # Jackson takes 128 to 255 for a byte and wraps it
    if not -limit <= number < limit:
        raise WrongTypeError
    return number


def _decimal(precision: int, scale: int, token: Token) -> Decimal:
    text = token.text.replace(",", "") if token.kind == "string" else token.text
    if token.kind not in ("int", "float", "string") or not _DECIMAL_TEXT.fullmatch(text):
        raise WrongTypeError
    written_out = str(Decimal(text)) if token.kind == "float" else token.text  # as Java's BigDecimal writes it
    if len(written_out) > LONGEST_DECIMAL or _ENDLESS.search(written_out):
        raise WrongTypeError
    return _rounded(Decimal(text), precision, scale)


def _rounded(number: Decimal, precision: int, scale: int) -> Decimal:
    unit = Decimal((0, (1,), -scale))
    rounded = number.quantize(unit, decimal.ROUND_HALF_UP, _EXACT) if number else unit * 0
    if not rounded:
        return unit * 0  # without a sign, as Java has it
    if len(rounded.as_tuple().digits) > precision:
        raise WrongTypeError
    return rounded


def _timestamp(token: Token) -> int:
    if token.kind == "string":
        return timestamp_us(token.text)
    if token.kind != "int" or not -(2**63) <= int(token.text) < 2**63:
        raise WrongTypeError
    return taken_us((int(token.text) * SECOND_US + 2**63) % 2**64 - 2**63)  # Spark multiplies without a check


def _time(read: Callable[[str], int], token: Token) -> int:
    if token.kind != "string":
        raise WrongTypeError
    return read(token.text)


def _to_float32(number: float) -> float:
    try:
        nearest: float = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return _INFINITE if number > 0 else -_INFINITE
    return nearest


_local_us = partial(timestamp_us, zoned=False)
_TYPES: dict[str, tuple[Quick, Thorough, Any]] = {
    "STRING": (partial(_quick_same, str), _string, pa.string()),
    "BOOLEAN": (partial(_quick_same, bool), _boolean, pa.bool_()),
    **{
        name: (partial(_quick_int, 2 ** (bits - 1)), partial(_int, bits), pa.type_for_alias(f"int{bits}"))
        for name, bits in WHOLE.items()
    },
    # Spark compares a FLOAT with a number as DOUBLE
    "FLOAT": (lambda value: _to_float32(_quick_double(value)), lambda token: _to_float32(_double(token)), pa.float64()),
    "DOUBLE": (_quick_double, _double, pa.float64()),
    "TIMESTAMP": (partial(_quick_time, timestamp_us), _timestamp, pa.timestamp("us")),
    "TIMESTAMP_NTZ": (partial(_quick_time, _local_us), partial(_time, _local_us), pa.timestamp("us")),
    "DATE": (partial(_quick_time, date_days), partial(_time, date_days), pa.date32()),
}
