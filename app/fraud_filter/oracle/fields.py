"""Turns the JSON value of one field into the value that the filter reads, by its type in payment.ddl.

A reader is given what Python's `json` makes of the value, with fractions as float or Decimal, and never None. It
refuses every value that does not fit the type. `query/json_record` does the same in Spark.

Values: STRING str, BOOLEAN bool, whole numbers int, DOUBLE and FLOAT float, DECIMAL Decimal with the type's scale,
TIMESTAMP int microseconds since 1970 in UTC, DATE int days since 1970, STRUCT dict, ARRAY list, MAP list of pairs.
"""

from __future__ import annotations

import decimal
import math
import re
import struct
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias

from fraud_filter.schema import DAY_US, DECIMAL_NUMBER, DECIMAL_TEXT, FIRST_TIME_US, LAST_TIME_US, UNITS_US, time_us
from fraud_filter.text.ddl import WHOLE, Kind

_DECIMAL_TEXT, _DECIMAL_NUMBER = re.compile(DECIMAL_TEXT), re.compile(DECIMAL_NUMBER)

_SURROGATE = re.compile("[\ud800-\udfff]")

_EXACT = decimal.Context(prec=4_000, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)

Read: TypeAlias = Callable[[Any], Any]


def field_reader(kind: Kind, unit: str = "") -> Read:
    """The reader of a type: it takes a value of Python's `json`, and raises ValueError or ArithmeticError.

    `unit` is that of numbers for a TIMESTAMP ("s", "ms", "us"), "" for none.
    """
    parts = {name: field_reader(part, unit) for name, part in kind.parts}
    if kind.name == "STRUCT":
        return partial(_struct, parts)
    if kind.name in ("ARRAY", "MAP"):
        return partial(_array if kind.name == "ARRAY" else _map, parts[""])
    if kind.name == "DECIMAL":
        return partial(_decimal, kind.precision, kind.scale)
    if kind.name in WHOLE:
        return partial(_whole, 2 ** (WHOLE[kind.name] - 1))
    if kind.name == "TIMESTAMP" and unit:
        return partial(_time_or_number, UNITS_US[unit])
    return _SCALARS[kind.name]


def _of(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise ValueError("of another type")
    return value


def _string(value: Any) -> str:
    text: str = _of(str, value)
    return text if text.isascii() else _SURROGATE.sub("?", text)  # as Java writes half of a pair


def _whole(limit: int, value: Any) -> int:
    if type(value) is not int or not -limit <= value < limit:
        raise ValueError("of another type")
    return value


def _double(value: Any) -> float:
    if type(value) is not float and type(value) is not int and type(value) is not Decimal:
        raise ValueError("of another type")
    number = float(value) + 0.0  # without the sign of a zero
    if not math.isfinite(number):
        raise ValueError("of another type")
    return number


def _float(value: Any) -> float:
    nearest: float = struct.unpack("<f", struct.pack("<f", _double(value)))[0] + 0.0  # "f" alone gives infinity
    return nearest


def _decimal(precision: int, scale: int, value: Any) -> Decimal:
    form = _DECIMAL_TEXT if type(value) is str else _DECIMAL_NUMBER
    if type(value) not in (str, int, Decimal) or not form.fullmatch(str(value)):  # as Java writes it, too
        raise ValueError("of another type")
    value = Decimal(value)
    unit = Decimal((0, (1,), -scale))
    rounded = value.quantize(unit, decimal.ROUND_HALF_UP, _EXACT) if value else unit * 0
    if not rounded:
        return unit * 0  # without a sign
    if len(rounded.as_tuple().digits) > precision:
        raise ValueError("of another type")
    return rounded


def _time(kind: str, unit: int, value: Any) -> int:
    return time_us(_of(str, value), kind) // unit


def _time_or_number(unit: int, value: Any) -> int:
    if type(value) is not int:
        return time_us(_of(str, value))
    if not FIRST_TIME_US <= value * unit <= LAST_TIME_US:
        raise ValueError("outside the years 0001 to 9999")
    return value * unit


def _struct(fields: dict[str, Read], value: Any) -> dict[str, Any]:
    given = _of(dict, value)
    return {name: None if (part := given.get(name)) is None else read(part) for name, read in fields.items()}


def _array(read: Read, value: Any) -> list[Any]:
    return [_element(read, part) for part in _of(list, value)]


def _map(read: Read, value: Any) -> list[tuple[str, Any]]:
    return [(_string(name), _element(read, part)) for name, part in _of(dict, value).items()]


def _element(read: Read, value: Any) -> Any:
    if value is None:
        raise ValueError("of another type")
    return read(value)


_SCALARS: dict[str, Read] = {
    "STRING": _string,
    "BOOLEAN": partial(_of, bool),
    "FLOAT": _float,
    "DOUBLE": _double,
    "TIMESTAMP": partial(_time, "TIMESTAMP", 1),
    "TIMESTAMP_NTZ": partial(_time, "TIMESTAMP_NTZ", 1),
    "DATE": partial(_time, "DATE", DAY_US),
}
