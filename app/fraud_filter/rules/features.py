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

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from fraud_filter.config import duration_s
from fraud_filter.config.kinds import Duration
from fraud_filter.rules.document import explain
from fraud_filter.schema import RULES_FIELD, PaymentSchema
from fraud_filter.schema import Field as PaymentField
from fraud_filter.text.ddl import WHOLE
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

_DECIMAL = re.compile(r"DECIMAL\((\d+)(?:, ?(\d+))?\)")

_MOST_DIGITS = 38

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
    line: int
    per: str
    over_ms: int
    kind: str
    field: str | None
    type: str
    total: str = ""
    half_ms: int = 0
    by: str = ""
    late_ms: int = 0

    @property
    def described(self) -> tuple[Any, ...]:
        """All that decides its value."""
        return self.name, self.per, self.over_ms, self.kind, self.field, self.type, *self._options

    def to_document(self) -> list[Any]:
        """For JSON; `read_feature` reads it."""
        return [self.name, self.per, self.over_ms, self.kind, self.field, self.type, self.total, *self._options]

    @property
    def _options(self) -> tuple[Any, ...]:
        """What is left out where it is not used: a checkpoint that knew no such option has the same feature."""
        if self.by:
            return self.half_ms, self.by, self.late_ms
        return (self.half_ms,) if self.half_ms else ()


def read_feature(document: Sequence[Any]) -> Feature:
    """The feature of a document that `to_document` gave.

    Raises:
        TypeError, ValueError: it is no such document.
    """
    name, *rest = document
    return Feature(name, 0, *rest)


def reach_ms(features: Iterable[Feature]) -> int:
    """How long before a payment others may lie that features of a file look at; 0 without any."""
    known = tuple(features)
    longest_ms = max((feature.over_ms for feature in known), default=0)
    late_ms = max((feature.late_ms for feature in known), default=0)
    return longest_ms * ((STRIDE + 1) if any(feature.half_ms for feature in known) else 1) + late_ms


class FeatureEntry(BaseModel):
    """A feature as it stands in the file."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]
    per: str
    over: Annotated[Duration, AfterValidator(lambda text: _length(text))] | None = None
    decay: (
        Annotated[Duration, AfterValidator(lambda text: _length(text, "a half-life", "a month", HALVINGS))] | None
    ) = None
    by: str | None = None
    late: Annotated[Duration, AfterValidator(lambda text: _length(text, "it"))] | None = None
    value: Annotated[str, AfterValidator(lambda text: _value(text))]
    description: str = ""


def _length(text: str, what: str = "a window", most: str = "a year", windows: int = 1) -> str:
    if not 1 <= duration_s(text) <= _LONGEST_S / windows:
        raise ValueError(f"{what} is between a second and {most} long, such as '10 minutes'")
    return text


def _value(text: str) -> str:
    match = _VALUE.fullmatch(text.strip())
    kind, has_field = (match["kind"], match["field"] is not None) if match else ("", False)
    if kind not in (OF_FIELD if has_field else PLAIN):
        known = (*PLAIN, *(f"{each}(FIELD)" for each in OF_FIELD))
        raise ValueError(f"unknown value{did_you_mean(text, known)}; there are {', '.join(known)}")
    return text


def parse_feature(given: Any, line: int, schema: PaymentSchema) -> tuple[Feature | None, list[str]]:
    """The feature and all that is wrong with it; the feature is None where something is."""
    try:
        entry = FeatureEntry.model_validate(given)
    except ValidationError as error:
        return None, [explain(detail, FeatureEntry) for detail in error.errors()]
    match = _VALUE.fullmatch(entry.value.strip())
    assert match  # noqa: S101 - checked by the entry
    kind, field = match["kind"], match["field"]
    flaws = [*_name_flaws(entry.name, schema), *_key_flaws(entry.per, schema)]
    flaws += [*_length_flaws(entry, kind), *_time_flaws(entry, schema)]
    type_, wrong = _value_type(kind, field, schema)
    total = _sum_type(_type(schema, field)) if kind in ("sum", "avg") and not wrong else ""
    if flaws or wrong:
        return None, [*flaws, *wrong]
    if entry.decay:
        half_ms = round(duration_s(entry.decay) * 1000)
        decaying = Feature(entry.name, line, entry.per, HALVINGS * half_ms, kind, field, "DOUBLE", "DOUBLE", half_ms)
        return decaying, []
    over_ms = round(duration_s(entry.over or "") * 1000)
    late_ms = round(duration_s(entry.late) * 1000) if entry.late else 0
    by = entry.by or ""
    return Feature(entry.name, line, entry.per, over_ms, kind, field, type_, total, by=by, late_ms=late_ms), []


def fields_of(features: Iterable[Feature]) -> tuple[PaymentField, ...]:
    """The features as fields that rules may use."""
    return tuple(PaymentField(feature.name, feature.type, required=False) for feature in features)


def _name_flaws(name: str, schema: PaymentSchema) -> list[str]:
    taken = {field.name.lower(): field.name for field in schema.fields}
    if name.lower() in taken:
        return [f"a record has a field {taken[name.lower()]!r}; give the feature another name"]
    if name.lower() == RULES_FIELD:
        return [f"the name {name!r} is reserved; give the feature another"]
    return []


def _key_flaws(per: str, schema: PaymentSchema) -> list[str]:
    types = {field.name: field.type for field in schema.fields}
    if per not in types:
        return [f"per: unknown field {per!r}{did_you_mean(per, types)}; a record has {', '.join(sorted(types))}"]
    if types[per] not in _KEYS:
        return [f"per: {per!r} is of type {types[per]}; a key is of type {', '.join(_KEYS)}"]
    return []


def _length_flaws(entry: FeatureEntry, kind: str) -> list[str]:
    if (entry.over is None) == (entry.decay is None):
        return ["give either `over:` (an exact window) or `decay:` (a half-life)"]
    if entry.decay and kind not in DECAYING:
        return [f"decay: {kind} does not decay; {' and '.join(DECAYING)} do, others take `over:`"]
    return []


def _time_flaws(entry: FeatureEntry, schema: PaymentSchema) -> list[str]:
    if (entry.by is None) != (entry.late is None):
        return ["`by:` (a field with a time) and `late:` (how far it may lie before the append time) go together"]
    if entry.by is None:
        return []
    times = [field.name for field in schema.fields if field.type == "TIMESTAMP"]
    if entry.by not in times:
        known = ", ".join(times) or "none"
        return [f"by: {entry.by!r} is no field of type TIMESTAMP{did_you_mean(entry.by, times)}; there are {known}"]
    if entry.decay:
        return ["decay: goes by the append time alone; leave out `by:` and `late:`, or give `over:`"]
    return []


def _value_type(kind: str, field: str | None, schema: PaymentSchema) -> tuple[str, list[str]]:
    """The type of a value, or what is wrong with it."""
    if field is None:
        return ("INT" if kind == "count" else "DOUBLE"), []
    types = {each.name: each.type for each in schema.fields}
    if field not in types:
        known = ", ".join(sorted(types))
        return "", [f"value: unknown field {field!r}{did_you_mean(field, types)}; a record has {known}"]
    given = types[field]
    numbers = (*WHOLE, *_FLOATING, f"DECIMAL of {_MOST_DIGITS - _MORE_DIGITS} digits at most")
    is_right = given in (*WHOLE, *_FLOATING) or _digits(given) is not None
    needed: tuple[str, ...] = numbers
    result = {"sum": _sum_type(given), "avg": "DOUBLE"}.get(kind, given)
    if kind == "count_distinct":
        is_right, needed = given in _EXACT or given.startswith("DECIMAL"), (*_EXACT, "DECIMAL")
        result = "INT"
    if not is_right:
        return "", [f"value: {kind} takes a field of type {', '.join(needed)}; {field!r} is of type {given}"]
    return result, []


def _type(schema: PaymentSchema, name: str | None) -> str:
    return next(field.type for field in schema.fields if field.name == name)


def _digits(given: str) -> tuple[int, int] | None:
    """Precision and scale of a DECIMAL that can be added."""
    match = _DECIMAL.fullmatch("DECIMAL(10, 0)" if given == "DECIMAL" else given)
    if match is None or int(match[1]) > _MOST_DIGITS - _MORE_DIGITS:
        return None
    return int(match[1]), int(match[2] or 0)


def _sum_type(given: str) -> str:
    if given in _FLOATING:
        return "DOUBLE"
    digits = _digits(given)
    return f"DECIMAL({digits[0] + _MORE_DIGITS}, {digits[1]})" if digits else "BIGINT"
