"""Turns columns of a data set into columns of payments, as a mapping says, a batch at a time (pyarrow)."""

from __future__ import annotations

import string
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fraud_filter.errors import UsageError
from fraud_filter.generator.mapping import ROW, FieldMapping, Mapping, utc_ms

_NUMBERS: dict[str, Any] = {
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DECIMAL": pa.float64(),  # JSON knows one kind of number
    "BOOLEAN": pa.bool_(),
}
_TIME = pa.timestamp("ms")
_HOUR_MS = 3_600_000

#: Text of times and dates in JSON, by the field's type. %S of a pyarrow timestamp carries its fraction.
_FORMATS = {"TIMESTAMP": "%Y-%m-%dT%H:%M:%SZ", "TIMESTAMP_NTZ": "%Y-%m-%dT%H:%M:%S", "DATE": "%Y-%m-%d"}


def convert(batch: Any, mapping: Mapping, first_row: int, where: str) -> dict[str, Any]:
    """The payments of a pyarrow RecordBatch, one array a field; times are timestamps in ms (UTC).

    Args:
        batch: holds at least `mapping.columns`.
        mapping: what to make of them.
        first_row: number of the batch's first row in the file, from 1.
        where: begins the error message, such as the file's name.

    Raises:
        UsageError: a value can't be converted; names the column.
    """
    fields = {}
    for name, how in mapping.fields.items():
        try:
            fields[name] = _cast(_source(batch, how, first_row), mapping.types[name], how)
        except (pa.ArrowException, ValueError) as error:
            source = " ".join(f"column {column!r}" for column in how.columns) or "constant"
            rows = f"rows {first_row} to {first_row + batch.num_rows - 1}"
            raise UsageError(f"{where}, {rows}, {source} for field {name!r} ({mapping.types[name]}): {error}") from None
    return fields


def as_json_values(fields: dict[str, Any], types: dict[str, str]) -> Any:
    """The payments as a RecordBatch that JSON can hold: times become ISO 8601, NaN and infinity null."""
    return pa.RecordBatch.from_pydict({name: _for_json(values, types[name]) for name, values in fields.items()})


def _for_json(values: Any, kind: str) -> Any:
    if kind in _FORMATS:
        return pc.strftime(values, format=_FORMATS[kind])
    if pa.types.is_floating(values.type):
        return pc.if_else(pc.is_finite(values), values, pa.scalar(None, values.type))
    return values


def _source(batch: Any, how: FieldMapping, first_row: int) -> Any:
    """The field before the cast to its type."""
    if how.constant is not None:
        return pa.repeat(pa.scalar(how.constant), batch.num_rows)
    if how.text is not None:
        return _text(batch, how.text, first_row)
    values = batch.column(how.column)
    if how.remove is not None:
        values = pc.replace_substring_regex(_string(values), pattern=how.remove, replacement="")
    if how.values is not None:
        values = _string(values)
        position = pc.index_in(values, value_set=pa.array(list(how.values)))
        other = values if how.otherwise is None else pa.scalar(how.otherwise)
        values = pc.coalesce(pc.take(pa.array(list(how.values.values())), position), other)
    if how.multiply is not None:
        values = pc.multiply(pc.cast(values, pa.float64()), how.multiply)
    return values


def _text(batch: Any, text: str, first_row: int) -> Any:
    parts: list[Any] = []
    for literal, column, _, _ in string.Formatter().parse(text):
        parts.append(pa.scalar(literal))
        if column == ROW:
            parts.append(_string(pa.array(range(first_row, first_row + batch.num_rows))))
        elif column is not None:
            parts.append(_string(batch.column(column)))
    parts.append(pa.repeat(pa.scalar(""), batch.num_rows))  # where all parts are scalars
    return pc.binary_join_element_wise(*parts, "", null_handling="replace", null_replacement="")


def _string(values: Any) -> Any:
    return pc.cast(values, pa.string())


def _cast(values: Any, kind: str, how: FieldMapping) -> Any:
    word = kind.split("(")[0]
    if word in ("STRING", "VARCHAR", "CHAR"):
        return _string(values)
    if word in _NUMBERS:
        return pc.cast(values, _NUMBERS[word])
    if word in _FORMATS:
        return _time(values, how)
    return values  # arrays and structures: as the file has them


def _time(values: Any, how: FieldMapping) -> Any:
    if how.epoch is not None:
        return pc.cast(pc.cast(_whole(values), pa.timestamp(how.epoch)), _TIME, safe=False)
    if how.hours_since is not None:
        passed = pc.round(pc.multiply(pc.cast(values, pa.float64()), _HOUR_MS))
        return pc.cast(pc.add(pc.cast(passed, pa.int64()), utc_ms(how.hours_since)), _TIME)
    if how.format is not None:
        return pc.cast(pc.strptime(_string(values), format=how.format, unit="us"), _TIME, safe=False)
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        raise ValueError("numbers are no times: say with epoch or hours_since what they count")
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        values = _times_in_words(values)
    return pc.cast(_without_zone(values), _TIME, safe=False)


def _whole(values: Any) -> Any:
    """Whole numbers, also from text such as 1371816893.0."""
    if pa.types.is_integer(values.type):
        return pc.cast(values, pa.int64())
    return pc.cast(pc.round(pc.cast(values, pa.float64())), pa.int64())


def _without_zone(values: Any) -> Any:
    """The same instants in UTC, without the name of a zone."""
    zoned = pa.types.is_timestamp(values.type) and values.type.tz is not None
    return pc.cast(values, pa.timestamp(values.type.unit)) if zoned else values


def _times_in_words(values: Any) -> Any:
    """ISO 8601 as timestamps: texts with a zone need another cast than those without."""
    try:
        return pc.cast(values, pa.timestamp("ns"))
    except pa.ArrowInvalid as without_zone:
        try:
            return pc.cast(values, pa.timestamp("ns", tz="UTC"))
        except pa.ArrowInvalid:
            raise without_zone from None
