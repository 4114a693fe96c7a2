"""The rules file as YAML has it: each value is the text that is written, so that `NO` and `00123` stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, InstanceOf, model_validator

from fraud_filter.config import refused
from fraud_filter.text.yaml_text import Entry, read_yaml


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
        return read_yaml(path, Document)
    except ValueError as error:
        raise refused("rules", path, str(error)) from None
