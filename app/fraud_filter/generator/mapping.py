"""The mapping file: how the columns of somebody's data set become the fields of a payment. Knows no data."""

from __future__ import annotations

import string
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow.compute as pc
import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from fraud_filter.errors import UsageError
from fraud_filter.schema import PaymentSchema
from fraud_filter.text.yaml_text import parse_yaml

#: In a `text`: the number of the row in its file, from 1.
ROW = "row"

_SHIPPED = Path(__file__).parent / "mappings"
_TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE")


class FieldMapping(BaseModel):
    """Where one field comes from, and what is done to it. The result is then cast to the field's type.

    Exactly one of `column`, `text` and `constant` is given; the others change what a `column` holds.

    Attributes:
        column: name of a column.
        text: columns put together, such as `{bank}-{account}`; `{row}` is the number of the row.
        constant: the same value for every payment.
        remove: regular expression (RE2); what it matches is cut out.
        values: replaces these values; others stay as they are.
        otherwise: replaces every value that is not in `values`.
        multiply: factor, such as 0.01 for an amount in cents.
        epoch: the column counts this unit since 1970-01-01T00:00:00Z.
        hours_since: the column counts hours since this time (UTC where it names no zone).
        format: the column is text like this strptime format (UTC).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)

    column: str | None = None
    text: str | None = None
    constant: str | int | float | bool | None = None
    remove: str | None = None
    values: Annotated[dict[str, str], Field(min_length=1)] | None = None
    otherwise: str | None = None
    multiply: float | None = None
    epoch: Literal["s", "ms", "us", "ns"] | None = None
    hours_since: datetime | None = None
    format: str | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> FieldMapping:
        if sum(given is not None for given in (self.column, self.text, self.constant)) != 1:
            raise ValueError("give exactly one of column, text and constant")
        if self.column is None and self.conversions:
            raise ValueError(f"{self.conversions[0]} goes with column only")
        if self.otherwise is not None and self.values is None:
            raise ValueError("otherwise goes with values only")
        if sum(given is not None for given in (self.epoch, self.hours_since, self.format)) > 1:
            raise ValueError("give only one of epoch, hours_since and format")
        if self.text is not None:
            text_columns(self.text)
        if self.remove is not None:
            pc.replace_substring_regex("", pattern=self.remove, replacement="")  # raises what Arrow thinks of it
        return self

    @property
    def conversions(self) -> list[str]:
        """Names of the conversions that are given."""
        others = ("column", "text", "constant")
        return [name for name in type(self).model_fields if name not in others and getattr(self, name) is not None]

    @property
    def columns(self) -> list[str]:
        """The columns that the field is made from."""
        if self.text is not None:
            return [name for name in text_columns(self.text) if name != ROW]
        return [] if self.column is None else [self.column]


def text_columns(text: str) -> list[str]:
    """The names in braces of a `text`, in order.

    Raises:
        ValueError: the braces don't match, or hold more than a name.
    """
    names = []
    for _, name, form, conversion in string.Formatter().parse(text):
        if form or conversion:
            raise ValueError(f"only a column's name may stand in braces, not {name}:{form or conversion}")
        if name is not None:
            names.append(name)
    return names


def _short(value: Any) -> Any:
    """`amount: amt` is short for `amount: {column: amt}`."""
    return {"column": value} if isinstance(value, str) else value


class _MappingFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    description: str = ""
    fields: dict[str, Annotated[FieldMapping, BeforeValidator(_short)]] = Field(min_length=1)


class Mapping:
    """The fields of a payment and where each comes from. `name` is what error messages call it."""

    def __init__(self, name: str, fields: dict[str, FieldMapping], schema: PaymentSchema) -> None:
        """Raises UsageError where the fields don't fit the payment schema."""
        self.name = name
        self.fields = fields
        self.types = {field.name: field.type for field in schema.fields if field.name in fields}
        for field in fields:
            if field not in self.types:
                known = ", ".join(known.name for known in schema.fields)
                raise UsageError(f"mapping {name}: {field!r} is not a field of a payment; the fields are {known}")
        for required in schema.required:
            if required not in fields:
                raise UsageError(
                    f"mapping {name}: the required field {required!r} is missing; map it or give a constant"
                )
        for field, how in fields.items():
            timed = [given for given in how.conversions if given in ("epoch", "hours_since", "format")]
            if timed and self.types[field] not in _TIMES:
                raise UsageError(f"mapping {name}, field {field}: {timed[0]} makes a time, not a {self.types[field]}")

    @property
    def columns(self) -> list[str]:
        """The columns that a file must have, each once."""
        return list(dict.fromkeys(column for how in self.fields.values() for column in how.columns))

    @property
    def time_field(self) -> str | None:
        """The field that tells when a payment was made: created_at, else the first TIMESTAMP."""
        times = [name for name, kind in self.types.items() if kind in ("TIMESTAMP", "TIMESTAMP_NTZ")]
        return "created_at" if "created_at" in times else (times[0] if times else None)


def shipped_mappings() -> list[str]:
    """Names of the mappings that come with the program."""
    return sorted(path.stem for path in _SHIPPED.glob("*.yml"))


def load_mapping(name: str, schema: PaymentSchema) -> Mapping:
    """Reads a shipped mapping by its name, or the YAML file `name`.

    Raises:
        UsageError: there is no such mapping, the file can't be read, or it does not map the payment schema.
    """
    path = Path(name)
    if name in shipped_mappings():
        path = _SHIPPED / f"{name}.yml"
    elif not path.exists():
        raise UsageError(f"--mapping {name}: neither a file nor a shipped mapping ({', '.join(shipped_mappings())})")
    try:
        content = _MappingFile.model_validate(parse_yaml(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"--mapping {name}: {path} can't be read: {error}") from None
    except ValidationError as error:
        detail = error.errors()[0]
        place = ".".join(str(part) for part in detail["loc"]) or "top level"
        reason = str(detail["msg"]).removeprefix("Value error, ")
        raise UsageError(f"mapping {name}, {place}: {detail['input']!r} is not accepted: {reason}") from None
    return Mapping(name, content.fields, schema)


def identity_mapping(columns: list[str], file: Path, schema: PaymentSchema) -> Mapping:
    """The mapping of a file whose columns are called like the fields of a payment; others are left out.

    Raises:
        UsageError: the file lacks a required field.
    """
    fields = {field.name: FieldMapping(column=field.name) for field in schema.fields if field.name in columns}
    missing = [name for name in schema.required if name not in fields]
    if missing:
        raise UsageError(
            f"--replay {file}: there is no column {missing[0]!r}; there are {', '.join(map(repr, columns))}. "
            f"Say with --mapping what is what: {', '.join(shipped_mappings())}, or a YAML file"
        )
    return Mapping("(none)", fields, schema)


def utc_ms(time: datetime) -> int:
    """Milliseconds since 1970; a time without a zone is taken as UTC."""
    return round((time if time.tzinfo else time.replace(tzinfo=timezone.utc)).timestamp() * 1000)
