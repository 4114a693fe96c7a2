"""Features of a payment's key: what the `features:` of the rules file may say.

A feature looks at the payments of the same key (`per`) in the window `over` before a payment, the payment included, or
at all of them that the state knows, of which older ones count less (`decay`). Times are the brokers' append times, or a
field of the payment (`by`) as far as that can be believed (`late`).

Decay is how much less an older payment counts; filter and audit both take it from here, to the last bit. A payment's
weight doubles in each half-life from the beginning of its period of the state on, in steps. So a sum of weights is one
number to which each payment adds its own; divided by the weight of now it is the decayed sum. Powers of two are exact,
and what lies between them is a table: Java and Python multiply, add and divide by one standard.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from fraud_filter.config import duration_s
from fraud_filter.config.kinds import Duration
from fraud_filter.schema import RULES_FIELD, PaymentSchema
from fraud_filter.schema import Field as PaymentField
from fraud_filter.text.ddl import MOST_DIGITS, WHOLE, Kind
from fraud_filter.text.nearest import did_you_mean

#: Steps of a half-life.
STEPS = 64

#: The weights of the steps, rounded once: not every machine's power function rounds alike.
BETWEEN = tuple(float(Decimal(2) ** (Decimal(step) / STEPS)) for step in range(STEPS))

#: A payment that is older by so many half-lives counts less than a thousandth, and may be forgotten.
HALVINGS = 10

#: A period's first weight is two to the power of minus this.
OFFSET = 750

#: Half-lives of a period: its last weight is not much more than two to the power of `OFFSET`.
MOST_HALVINGS = 2 * OFFSET

#: A period of the state begins every so many windows, and is one window longer.
STRIDE = 4


def weight(age_ms: int, half_ms: int) -> float:
    """The weight of a payment `age_ms` after the beginning of its period."""
    halvings, step = divmod(age_ms * STEPS // half_ms, STEPS)
    return float(2.0 ** (halvings - OFFSET)) * BETWEEN[step]


def least_half_ms(longest_ms: int) -> float:
    """The shortest half-life beside a window of that length, which makes the periods."""
    return (STRIDE + 1) * longest_ms / MOST_HALVINGS


#: Values without a field, and values of one.
PLAIN = ("count", "seconds_since_last", "first_seen")

OF_FIELD = ("sum", "avg", "min", "max", "count_distinct")

#: Those that can decay.
DECAYING = ("count", "sum")

_FLOATING = ("FLOAT", "DOUBLE")

#: Types whose values are equal or not, without a doubt (a zero with a sign, a NaN).
_EXACT = (*WHOLE, "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ")

_KEYS = (*WHOLE, "STRING")

_VALUE = re.compile(r"(?P<kind>\w+)(?:\(\s*(?P<field>[^()]+?)\s*\))?")

#: Digits that the sum of so many payments as a state holds may have more than one of them.
_MORE_DIGITS = 4

#: A year: a longer window is a mistake.
_LONGEST_S = 366 * 86_400


@dataclass(frozen=True)
class Feature:
    """One feature: `kind` is of `PLAIN` or `OF_FIELD`, `type` its value's Spark SQL type, `over_ms` its window.

    `total` is the type in which values of the field are added; "" where they are not.
    `line` is the line of the rules file on which it begins, counted from 1. `half_ms` is the half-life of what decays;
    its window is that within which a payment counts a thousandth and more. `by` is the field by whose time windows go,
    "" for the append time; it is believed where it lies up to `late_ms` before that, and not after it.
    """

    name: str
    per: str
    over_ms: int
    kind: str
    field: str | None
    type: str
    total: str = ""
    half_ms: int = 0
    by: str = ""
    late_ms: int = 0
    line: int = dataclasses.field(default=0, compare=False)

    @property
    def described(self) -> tuple[Any, ...]:
        """All that decides its value."""
        return dataclasses.astuple(self)[:-1]


def reach_ms(features: Iterable[Feature]) -> int:
    """How long before a payment others may lie that features of a file look at; 0 without any."""
    known = tuple(features)
    longest_ms = max((feature.over_ms for feature in known), default=0)
    late_ms = max((feature.late_ms for feature in known), default=0)
    return longest_ms * ((STRIDE + 1) if any(feature.half_ms for feature in known) else 1) + late_ms


def _length(text: str) -> str:
    if not 1 <= duration_s(text) <= _LONGEST_S:
        raise ValueError("it is between a second and a year long, such as '10 minutes'")
    return text


def _value(given: object) -> tuple[str, str | None]:
    """The kind of a value, and its field."""
    match = _VALUE.fullmatch(str(given).strip())
    if match is None or match["kind"] not in (OF_FIELD if match["field"] else PLAIN):
        known = (*PLAIN, *(f"{each}(FIELD)" for each in OF_FIELD))
        raise ValueError(f"unknown value{did_you_mean(str(given), known)}; there are {', '.join(known)}")
    return match["kind"], match["field"]


_Length = Annotated[Duration, AfterValidator(_length)]


class FeatureEntry(BaseModel):
    """A feature as it stands in the file."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]
    per: str
    over: _Length | None = None
    decay: _Length | None = None
    by: str | None = None
    late: _Length | None = None
    value: Annotated[tuple[str, str | None], BeforeValidator(_value)]
    description: str = ""

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if (self.over is None) == (self.decay is None):
            raise ValueError("give either `over:` (an exact window) or `decay:` (a half-life)")
        if (self.by is None) != (self.late is None):
            raise ValueError(
                "`by:` (a field with a time) and `late:` (how far it may lie before the append time) go together"
            )
        if self.decay and self.value[0] not in DECAYING:
            raise ValueError(f"decay: {self.value[0]} does not decay; {' and '.join(DECAYING)} do, others take `over:`")
        if self.decay and self.by:
            raise ValueError("decay: goes by the append time alone; leave out `by:` and `late:`, or give `over:`")
        if self.decay and HALVINGS * duration_s(self.decay) > _LONGEST_S:
            raise ValueError("decay: a half-life is at most a month long")
        return self


def parse_feature(entry: FeatureEntry, line: int, schema: PaymentSchema) -> Feature:
    """The feature of an entry.

    Raises:
        ValueError: what is wrong with it.
    """
    for taken in schema.fields:
        if entry.name.lower() == taken.name.lower():
            raise ValueError(f"a record has a field {taken.name!r}; give the feature another name")
    if entry.name.lower() == RULES_FIELD:
        raise ValueError(f"the name {entry.name!r} is reserved; give the feature another")
    _check_type("per", entry.per, schema, "it", _KEYS)
    if entry.by:
        _check_type("by", entry.by, schema, "it", ("TIMESTAMP",))
    (kind, field), total = entry.value, ""
    type_ = "INT" if kind in ("count", "count_distinct") else "DOUBLE"
    if kind == "count_distinct":
        _check_type("value", str(field), schema, kind, (*_EXACT, "DECIMAL"))
    elif field:
        given = _check_type("value", field, schema, kind, (*WHOLE, *_FLOATING, "DECIMAL"))
        total = _sum_type(given) if kind in ("sum", "avg") else ""
        type_ = {"sum": total, "avg": "DOUBLE"}.get(kind, str(given))
    half_ms, late_ms = _ms(entry.decay), _ms(entry.late)
    over_ms = HALVINGS * half_ms or _ms(entry.over)
    type_, total = ("DOUBLE", "DOUBLE") if half_ms else (type_, total)
    return Feature(entry.name, entry.per, over_ms, kind, field, type_, total, half_ms, entry.by or "", late_ms, line)


def fields_of(features: Iterable[Feature]) -> tuple[PaymentField, ...]:
    """The features as fields that rules may use."""
    return tuple(PaymentField(feature.name, feature.type, required=False) for feature in features)


def _check_type(key: str, name: str, schema: PaymentSchema, what: str, takes: Sequence[str]) -> Kind:
    """The type of a field under a key of the entry; a ValueError says why it can't stand there."""
    try:
        kind = schema.field(name).kind
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None
    if kind.name not in takes:
        raise ValueError(f"{key}: {what} takes a field of type {', '.join(takes)}; {name!r} is of type {kind}")
    return kind


def _ms(interval: str | None) -> int:
    return round(duration_s(interval) * 1000) if interval else 0


def _sum_type(kind: Kind) -> str:
    if kind.name in _FLOATING:
        return "DOUBLE"
    if kind.name != "DECIMAL":
        return "BIGINT"
    if kind.precision + _MORE_DIGITS > MOST_DIGITS:
        raise ValueError(f"value: sums take a DECIMAL of {MOST_DIGITS - _MORE_DIGITS} digits at most, not {kind}")
    return f"DECIMAL({kind.precision + _MORE_DIGITS}, {kind.scale})"
