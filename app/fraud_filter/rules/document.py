"""The rules file as YAML has it: each value is the text that is written, so that `NO` and `00123` stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, InstanceOf, ValidationError, model_validator

from fraud_filter.config import refused
from fraud_filter.text.nearest import did_you_mean
from fraud_filter.text.yaml_text import Entry, parse_yaml

_SETTING = "rules"
_SHOWN = 80


class Document(BaseModel):
    """The file."""

    model_config = ConfigDict(extra="forbid")
    rules: Annotated[list[InstanceOf[Entry]], Field(min_length=1)]
    features: list[InstanceOf[Entry]] = []
    model: Annotated[str, Field(min_length=1)] | None = None


class Blocked(BaseModel):
    """A block list: the ids, or the file that holds them."""

    model_config = ConfigDict(extra="forbid")
    column: str
    ids: list[Annotated[str, Field(min_length=1)]] = []
    file: str | None = None

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if bool(self.ids) == (self.file is not None):
            raise ValueError("give the blocked ids either as `ids: [...]` or as `file: NAME`")
        return self


class RuleEntry(BaseModel):
    """A rule as it stands in the file."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
    description: str = ""
    when: str | None = None
    blocked: Blocked | None = None

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.when is None) == (self.blocked is None):
            raise ValueError("a rule has either `when:` (a predicate) or `blocked:` (a list of ids)")
        return self


def read_document(path: Path) -> Document:
    """The entries of `rules` and of `features`, and where the `model` is; the last two may be left out.

    Raises:
        UsageError: the file can't be read, is not YAML, or holds no list of rules.
    """
    try:
        return Document.model_validate(parse_yaml(path.read_text(encoding="utf-8-sig")))
    except ValidationError as error:
        raise refused(_SETTING, path, f"is not accepted: {'; '.join(flaws_of(error, Document))}") from None
    except yaml.YAMLError as error:
        mark, told = getattr(error, "problem_mark", None), getattr(error, "problem", error)
        where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise refused(_SETTING, path, f"is not valid YAML{where}: {told}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise refused(_SETTING, path, f"can't be read: {error}") from None


#: By the type of pydantic's error.
_WORDS = {
    "missing": "is missing; give it",
    "string_type": "must be a text",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must begin with a letter and have at most 64 letters, digits, - and _",
    "list_type": "must be a list, such as [a, b]",
    "too_short": "must hold at least one",
    "model_type": "must be a mapping of keys to values",
    "is_instance_of": "must be a mapping of keys to values",
}


def flaws_of(error: ValueError, entry: type[BaseModel]) -> list[str]:
    """What is wrong with an entry of the kind `entry`, in words."""
    return (
        [_explain(detail, entry) for detail in error.errors()] if isinstance(error, ValidationError) else [str(error)]
    )


def _explain(detail: Any, entry: type[BaseModel]) -> str:
    *above, last = detail["loc"] or ("",)
    where = ".".join(map(str, (*above, last)))
    if detail["type"] == "extra_forbidden":
        keys = (Blocked if above else entry).model_fields
        return f"{where}: unknown key{did_you_mean(str(last), keys)}; there are {', '.join(keys)}"
    reason = _WORDS.get(detail["type"], detail["msg"].removeprefix("Value error, "))
    tells = detail["type"] != "missing" and not isinstance(detail["input"], dict)
    given = f" (got {str(detail['input'])[:_SHOWN]!r})" if tells else ""
    return f"{where + ': ' if where else ''}{reason}{given}"
