"""One entry of the rules file: its keys and their types, and in words all that is wrong with them. Knows no file."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fraud_filter.text.nearest import did_you_mean

_SHOWN = 80


class Blocked(BaseModel):
    """A block list: the ids, or the file that holds them."""

    model_config = ConfigDict(extra="forbid")
    column: str
    ids: list[Annotated[str, Field(min_length=1)]] = []
    file: str | None = None


class Entry(BaseModel):
    """A rule as it stands in the file."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
    description: str = ""
    when: str | None = None
    blocked: Blocked | None = None


#: By the type of pydantic's error.
_WORDS = {
    "missing": "is missing; give it",
    "string_type": "must be a text; put it into quotes",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must begin with a letter and have at most 64 letters, digits, - and _",
    "list_type": "must be a list, such as [a, b]",
    "model_type": "must be a mapping of keys to values",
}


def parse_entry(given: Any) -> tuple[Entry | None, list[str]]:
    """The entry and all that is wrong with it; the entry is None where something is."""
    entry, flaws = None, []
    try:
        entry = Entry.model_validate(given)
    except ValidationError as error:
        flaws = [explain(detail, Entry) for detail in error.errors()]
    flaws += _choices(given)
    return (None if flaws else entry), flaws


def explain(detail: Any, entry: type[BaseModel]) -> str:
    """What pydantic found wrong with an entry of the kind `entry`, in words."""
    *above, last = detail["loc"] or ("",)
    where = ".".join(map(str, (*above, last)))
    if detail["type"] == "extra_forbidden":
        keys = (Blocked if above else entry).model_fields
        return f"{where}: unknown key{did_you_mean(str(last), keys)}; there are {', '.join(keys)}"
    reason = _WORDS.get(detail["type"], detail["msg"].removeprefix("Value error, "))
    given = "" if detail["type"] == "missing" else f" (got {str(detail['input'])[:_SHOWN]!r})"
    return f"{where + ': ' if where else ''}{reason}{given}"


def _choices(given: Any) -> list[str]:
    """Where one of two keys is needed and there are both or none."""
    if not isinstance(given, dict):
        return []
    flaws = []
    if not _has_one(given, Entry, given.get("when") is not None, given.get("blocked") is not None):
        flaws.append("a rule has either `when:` (a predicate) or `blocked:` (a list of ids)")
    blocked = given.get("blocked")
    if isinstance(blocked, dict) and not _has_one(
        blocked, Blocked, bool(blocked.get("ids")), blocked.get("file") is not None
    ):
        flaws.append("blocked: give the blocked ids either as `ids: [...]` or as `file: NAME`")
    return flaws


def _has_one(given: dict[Any, Any], model: type[BaseModel], one: bool, other: bool) -> bool:
    """Or none, where a key that is not known may be the one that is missing."""
    return one != other or (not one and not given.keys() <= model.model_fields.keys())
