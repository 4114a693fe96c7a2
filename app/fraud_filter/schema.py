"""What a payment looks like (`payment.ddl`) and how records are laid out on the topics."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from fraud_filter.config import Settings, refused
from fraud_filter.text.ddl import DdlError, Kind, parse_columns, parse_type
from fraud_filter.text.nearest import did_you_mean

_SETTING = "payment_schema"
_EXAMPLE = "give it as `amount DOUBLE NOT NULL, merchant STRING`"

#: Headers of every written record: where the payment was read, as decimal text. The timestamp is the append time
#: of the payment on the broker's clock, in milliseconds since 1970 (LogAppendTime).
HEADER_TOPIC = "source.topic"
HEADER_PARTITION = "source.partition"
HEADER_OFFSET = "source.offset"
HEADER_TIMESTAMP = "source.timestamp"
#: The id of the payment's topic, as Kafka's tools print it; not there where the brokers give none (before 2.8). A topic
#: that was deleted and created again has the same name and offsets, and another id.
HEADER_TOPIC_ID = "source.topic_id"
#: What decided: the version of rules, schema and settings, as `rules/version` makes it.
HEADER_RULES = "rules.version"
#: What was decided: APPROVE, FLAG or REJECT.
HEADER_DECISION = "decision"
APPROVE, FLAG, REJECT = "approve", "flag", "reject"
#: Which start of a filter wrote the record: a number that rises with each start on the checkpoint (`next_writer`).
HEADER_WRITER = "writer"
#: Header of rejected records: why, one of the REASON_* values, the last three followed by ": " and names of fields.
#: A record that is too large is written without key and value; where it lies is in the headers.
HEADER_REASON = "reject.reason"
#: Header of flagged and approved records: names of features whose window holds as many payments as the state keeps of
#: a key, so that earlier ones may be missing; parted by commas. There is none where no window does.
HEADER_TRUNCATED = "features.truncated"

#: Header of decisions where the rules have a model: its version.
HEADER_MODEL = "model.version"
#: Header of payments whose truth is known: LEGITIMATE, or a name of the fraud that it is part of. The filter never sees
#: it; who trains a model or judges rules does.
HEADER_LABEL = "label"
LEGITIMATE = b"legitimate"

REASON_EMPTY = "empty-record"
REASON_MALFORMED = "malformed-json"
REASON_TOO_LARGE = "too-large"
#: Something that is no white space follows the JSON object.
REASON_TRAILING = "trailing-content"
#: An object, the payment's or one within it, has a name twice. The name is told where it is the payment's.
REASON_DUPLICATE = "duplicate-key"
REASON_MISSING = "missing-field"
#: Where record_format says that each record has Schema Registry's prefix: this one has not.
REASON_NO_SCHEMA_ID = "no-schema-id"
REASON_WRONG_TYPE = "wrong-type"
#: The record's own timestamp lies outside the years that a time may have.
REASON_RECORD_TIME = "record-time"

#: It came so long after its append that the state of its windows may have left: see `velocity_lag`.
REASON_LATE = "late"
#: It ended the query each time, or held it, while others passed.
REASON_UNDECIDABLE = "undecidable"

#: The first and the last time that a TIMESTAMP, TIMESTAMP_NTZ, DATE or a record's own timestamp may have, in UTC:
#: functions of dates throw on some of the others. A field with another one is of the wrong type.
FIRST_TIME, LAST_TIME = "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"
#: The same in microseconds since 1970.
FIRST_TIME_US, LAST_TIME_US = -62_135_596_800_000_000, 253_402_300_799_999_999

#: Microseconds of the units that numbers for a TIMESTAMP may have (setting `time_unit`).
UNITS_US = {"s": 1_000_000, "ms": 1_000, "us": 1}
SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US

#: Schema Registry's prefix: this byte, then the schema's id in four. The id is not looked at.
PREFIX_BEGIN, PREFIX_BYTES = b"\0", 5

#: A text with so many characters in a row of which a number may be made is no JSON for filter and audit: both then read
#: all numbers alike.
LONGEST_NUMBER = 500
_OF_NUMBERS = "[-+.0-9eE]"
NUMBER_RUN = f"(?<!{_OF_NUMBERS}){_OF_NUMBERS}{{{LONGEST_NUMBER}}}"  # looked for from the beginning of each run alone
#: Objects and arrays may lie so deep in one another, the record itself included.
MOST_LEVELS = 100
#: What a TIMESTAMP, TIMESTAMP_NTZ, DATE may look like, and a DECIMAL that is a text. A DECIMAL that is a number is
#: looked at as Java's BigDecimal writes it: an exponent has three digits at most, as Java writes out what it says.
_DAY = r"(?!0000|0001-01-01[^+]*\+|9999-12-31.[^-]*-)[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_MINUTE, _SECOND = "(?:[01][0-9]|2[0-3]):[0-5][0-9]", r":[0-5][0-9](?:\.[0-9]{1,9})?"
_ZONE = "(?:Z|[+-](?:(?:0[0-9]|1[0-7])(?::?[0-5][0-9])?|18(?::?00)?))"
FORMS = {
    "DATE": _DAY,
    "TIMESTAMP": f"{_DAY}(?:[T ]{_MINUTE}(?:{_SECOND}{_ZONE}?)?)?",
    "TIMESTAMP_NTZ": f"{_DAY}(?:[T ]{_MINUTE}(?:{_SECOND})?)?",
}
DECIMAL_TEXT = r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?"
DECIMAL_NUMBER = rf"{DECIMAL_TEXT}(?:E[+-]?[0-9]{{1,3}})?"

#: Field of a flagged or approved record's JSON that names the matched rules, in the order of the rules file.
RULES_FIELD = "rules"
#: Column of the model's score, and the digits after its point: further ones depend on the order of an addition, and so
#: on the processor.
SCORE, SCORE_DIGITS = "score", 6


def time_us(text: str, kind: str = "TIMESTAMP") -> int:
    """The microseconds since 1970 in UTC of a text that a field of the kind takes; further digits are cut off.

    Raises:
        ValueError: it takes no such time.
    """
    if not re.fullmatch(FORMS[kind], text):
        raise ValueError(f"not a {kind}: {text!r}")
    moment = datetime.fromisoformat(text)
    since = moment.replace(tzinfo=None) - datetime(1970, 1, 1) - (moment.utcoffset() or timedelta())
    return since // timedelta(microseconds=1)


@dataclass(frozen=True)
class Field:
    """One field of a payment: name, Spark SQL type (type names in upper case), whether a payment must carry it."""

    name: str
    type: str
    required: bool

    @property
    def kind(self) -> Kind:
        """The type, taken apart."""
        return parse_type(self.type)


@dataclass(frozen=True)
class PaymentSchema:
    """The fields of a payment, in the order of the file.

    `has_prefix`: Schema Registry's is before each record. `time_unit` is that of numbers for a TIMESTAMP, "" for none.
    """

    fields: tuple[Field, ...]
    has_prefix: bool = False
    time_unit: str = ""

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the fields that a payment must carry."""
        return tuple(field.name for field in self.fields if field.required)

    def field(self, name: str) -> Field:
        """The field of this name; a ValueError tells that there is none, and the others."""
        found = {field.name: field for field in self.fields}
        if name not in found:
            known = ", ".join(sorted(found))
            raise ValueError(f"unknown field {name!r}{did_you_mean(name, found)}; a record has {known}")
        return found[name]

    @property
    def has_decimals(self) -> bool:
        """Whether a field is a DECIMAL, or has one within it."""
        return any("DECIMAL(" in field.type for field in self.fields)

    @property
    def ddl(self) -> str:
        """The schema as DDL: all fields nullable."""
        return ", ".join(f"`{field.name}` {field.type}" for field in self.fields)


def load_schema(path: Path) -> PaymentSchema:
    """Reads a file of Spark DDL columns, such as `amount DOUBLE NOT NULL, merchant STRING`.

    Raises:
        UsageError: the file can't be read, is not DDL, has a word that a payment's field may not have, or names a
            field twice or by a reserved name.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise refused(_SETTING, path, f"can't be read: {error}") from None
    try:
        fields = tuple(Field(*column) for column in parse_columns(text))
    except DdlError as error:
        raise refused(_SETTING, path, f"is no list of Spark DDL columns: {error}", _EXAMPLE) from None
    _check_names(path, fields)
    return PaymentSchema(fields)


def input_schema(settings: Settings) -> PaymentSchema:
    """The schema of the input topic's records.

    Raises:
        UsageError: as `load_schema`.
    """
    unit = "" if settings.time_unit == "none" else settings.time_unit
    has_prefix = settings.record_format == "json-registry"
    return replace(load_schema(settings.payment_schema), has_prefix=has_prefix, time_unit=unit)


def _check_names(path: Path, fields: tuple[Field, ...]) -> None:
    for field in fields:
        name = field.name.lower()
        if name == RULES_FIELD or name.startswith("_"):
            why = f"the filter adds {RULES_FIELD!r} to flagged records and uses names that begin with '_' itself"
            raise refused(_SETTING, path, f"has the field {field.name!r}, whose name is reserved ({why})")
