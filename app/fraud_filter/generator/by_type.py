"""Values made up by type alone, for the fields of a schema that tells nothing of their meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from fraud_filter.schema import Field

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
        kinds = {field.name: exp.DataType.build(field.type, dialect="spark") for field in fields}
        self._draws = {name: _draw(name, kind) for name, kind in kinds.items()}

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


def _draw(name: str, kind: Any) -> _Draw:
    if kind.is_type("array"):
        return _array(_draw(name, kind.expressions[0]))
    if kind.is_type("map"):
        return _map(_draw(name, kind.expressions[0]), _draw(name, kind.expressions[1]))
    if kind.is_type("struct"):
        return _struct({part.name: _draw(part.name, part.args["kind"]) for part in kind.expressions})
    return _scalar(name, kind)


def _scalar(name: str, kind: Any) -> _Draw:
    word = kind.this.name
    if word in _WHOLE:
        return lambda rng, times: rng.integers(_WHOLE[word], size=len(times)).tolist()
    if word in ("FLOAT", "DOUBLE"):
        return lambda rng, times: (rng.integers(_VALUES * 100, size=len(times)) / 100).tolist()
    if word == "DECIMAL":
        digits, scale = [*(int(part.name) for part in kind.expressions), 0][:2] if kind.expressions else (10, 0)
        places = min(scale, 2)
        most = min(10 ** (digits - scale), _VALUES) * 10**places
        return lambda rng, times: (rng.integers(most, size=len(times)) / 10**places).tolist()
    if word == "BOOLEAN":
        return lambda rng, times: (rng.random(len(times)) < 0.5).tolist()
    if word == "TEXT":
        return lambda rng, times: [f"{name}-{number}" for number in rng.integers(_VALUES, size=len(times)).tolist()]
    if word in ("TIMESTAMPTZ", "TIMESTAMPLTZ"):
        return lambda _rng, times: [f"{text}Z" for text in _texts(times, "ms")]
    if word in ("TIMESTAMP", "TIMESTAMPNTZ"):
        return lambda _rng, times: _texts(times, "ms")
    return lambda _rng, times: _texts(times, "D")


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
    # JSON has texts as keys, whatever their type.
    return lambda rng, times: [{str(pair["key"]): pair["value"] for pair in row} for row in pairs(rng, times)]


def _struct(draws: dict[str, _Draw]) -> _Draw:
    def drawn(rng: np.random.Generator, times: NDArray[np.int64]) -> Drawn:
        columns = [draw(rng, times) for draw in draws.values()]
        return [dict(zip(draws, row, strict=True)) for row in zip(*columns, strict=True)]

    return drawn
