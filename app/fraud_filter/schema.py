"""What a payment looks like (`payment.ddl`) and how records are laid out on the topics. Knows no Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import sqlglot
from sqlglot import exp

from fraud_filter.errors import UsageError

#: Headers of every written record: where the payment was read, as decimal text. The timestamp is the append time
#: of the payment on the broker's clock, in milliseconds since 1970 (LogAppendTime).
HEADER_TOPIC = "source.topic"
HEADER_PARTITION = "source.partition"
HEADER_OFFSET = "source.offset"
HEADER_TIMESTAMP = "source.timestamp"
#: The id of the payment's topic, as Kafka's tools print it; not there where the brokers give none (before 2.8). A topic
#: that was deleted and created again has the same name and offsets, and another id.
HEADER_TOPIC_ID = "source.topic_id"
#: Header of rejected records: why, one of the REASON_* values, the last three followed by ": " and names of fields.
#: A record that is too large is written without key and value; where it lies is in the headers.
HEADER_REASON = "reject.reason"

REASON_EMPTY = "empty-record"
REASON_MALFORMED = "malformed-json"
REASON_TOO_LARGE = "too-large"
#: Something that is no white space follows the JSON object.
REASON_TRAILING = "trailing-content"
#: An object, the payment's or one within it, has a name twice. The name is told where it is the payment's.
REASON_DUPLICATE = "duplicate-key"
REASON_MISSING = "missing-field"
REASON_WRONG_TYPE = "wrong-type"

#: A value of a DECIMAL field has this many characters at most, and no exponent of more digits than three: Java would
#: write out what the exponent says, a million digits take seconds. Others are of the wrong type.
LONGEST_DECIMAL = 1100
ENDLESS_EXPONENT = "[eE][+-]?[0-9]{4}"

#: Field of a flagged record's JSON that names the matched rules, in the order of the rules file.
RULES_FIELD = "rules"


@dataclass(frozen=True)
class Field:
    """One field of a payment: name, Spark SQL type (type names in upper case), whether a payment must carry it."""

    name: str
    type: str
    required: bool

    @property
    def is_decimal(self) -> bool:
        """Whether it is a DECIMAL of whatever precision."""
        return self.type.startswith("DECIMAL")


@dataclass(frozen=True)
class PaymentSchema:
    """The fields of a payment, in the order of the file."""

    fields: tuple[Field, ...]

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the fields that a payment must carry."""
        return tuple(field.name for field in self.fields if field.required)

    @property
    def ddl(self) -> str:
        """The schema for `from_json`: all fields nullable, so that an absent one gives null and not an error."""
        return ", ".join(f"`{field.name}` {field.type}" for field in self.fields)


def load_schema(path: Path) -> PaymentSchema:
    """Reads a file of Spark DDL columns, such as `amount DOUBLE NOT NULL, merchant STRING`.

    Raises:
        UsageError: the file can't be read, is not DDL, names a field twice or by a reserved name, or has a DECIMAL
            within another type.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"setting payment_schema: {path} can't be read: {error}") from None
    try:
        table = sqlglot.parse_one(f"CREATE TABLE payment (\n{text}\n)", dialect="spark")
    except sqlglot.errors.ParseError as error:
        detail = error.errors[0]
        raise UsageError(
            f"setting payment_schema: {path}, line {detail['line'] - 1}, near {detail['highlight']!r}: not a Spark "
            "DDL column list; give it as `amount DOUBLE NOT NULL, merchant STRING`"
        ) from None
    except (sqlglot.errors.SqlglotError, RecursionError, IndexError):
        # an open quotation or comment, types nested too deeply; the tokenizer's own texts say nothing of the file
        raise UsageError(
            f"setting payment_schema: {path} is not a Spark DDL column list (a quotation or comment may be left open); "
            "give it as `amount DOUBLE NOT NULL, merchant STRING`"
        ) from None
    columns = list(table.this.expressions) if isinstance(table.this, exp.Schema) else []
    if not columns or not all(isinstance(column, exp.ColumnDef) and column.kind for column in columns):
        raise UsageError(
            f"setting payment_schema: {path} must hold a Spark DDL column list such as "
            "`amount DOUBLE NOT NULL, merchant STRING`"
        )
    fields = tuple(
        Field(
            name=column.name,
            type=column.kind.sql(dialect="spark"),
            required=column.find(exp.NotNullColumnConstraint) is not None,
        )
        for column in columns
    )
    _check_names(path, fields)
    for column in columns:
        _check_decimals(path, column.name, column.kind)
    return PaymentSchema(fields)


def _check_names(path: Path, fields: tuple[Field, ...]) -> None:
    seen: set[str] = set()
    for field in fields:
        name = field.name.lower()  # Spark resolves column names without regard to case
        if name in seen:
            raise UsageError(f"setting payment_schema: {path} names the field {field.name!r} twice")
        if name == RULES_FIELD or name.startswith("_"):
            raise UsageError(
                f"setting payment_schema: {path}: the field name {field.name!r} is reserved (the filter adds "
                f"{RULES_FIELD!r} to flagged payments and uses names that begin with '_' itself)"
            )
        seen.add(name)


def _check_decimals(path: Path, name: str, kind: exp.DataType) -> None:
    """A DECIMAL within another type would be read by Spark alone, which writes out whatever an exponent says."""
    within = (part for part in kind.find_all(exp.DataType) if part is not kind)
    if any(part.is_type("decimal") for part in within):
        raise UsageError(
            f"setting payment_schema: {path}: the field {name!r} of type {kind.sql(dialect='spark')} has "
            "a DECIMAL within it, where one number such as 1e999999999 stops the query; give it a field of its own, "
            "or take DOUBLE or STRING there"
        )
