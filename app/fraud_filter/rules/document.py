"""The rules file as YAML has it: where each entry stands, its keys and their types, and what is wrong there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fraud_filter.config import refused
from fraud_filter.text.nearest import did_you_mean
from fraud_filter.text.yaml_text import parse_yaml

_SETTING = "rules"
_SHOWN = 80

RULES, FEATURES, MODEL = "rules", "features", "model"


class Listed(NamedTuple):
    """An entry of one of the lists, as YAML has it, and where it stands."""

    given: Any
    node: yaml.Node
    label: str

    @property
    def line(self) -> int:
        """Counted from 1."""
        return int(self.node.start_mark.line) + 1


def read_document(path: Path) -> tuple[dict[str, list[Listed]], str | None]:
    """The entries of `rules` and of `features`, and where the `model` is; the last two may be left out.

    Raises:
        UsageError: the file can't be read, is not YAML, or holds no list of rules.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise refused(_SETTING, path, f"can't be read: {error}") from None
    try:
        document = parse_yaml(text)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise refused(_SETTING, path, f"is not valid YAML{where}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise refused(_SETTING, path, f"is not valid YAML: {error}") from None
    _check_keys(path, document)
    assert isinstance(root, yaml.MappingNode)  # noqa: S101 - the document is a mapping, seen above
    for flaw in _repeated(root):
        raise refused(_SETTING, path, f"is not accepted: {flaw}")
    lists = {name.value: node for name, node in root.value}
    are_lists = all(isinstance(node, yaml.SequenceNode) for name, node in lists.items() if name != MODEL)
    if set(lists) != set(document) or not are_lists:
        # merged in from elsewhere (`<<:`)
        raise refused(_SETTING, path, "must hold `rules:` itself, with a list of rules")
    listed = {name: _list(document.get(name, []), lists.get(name)) for name in (RULES, FEATURES)}
    return listed, document.get(MODEL)


def repeated_keys(node: yaml.Node) -> list[str]:
    """The keys that stand twice in an entry and in what is in it; a node may be part of itself."""
    flaws: list[str] = []
    waiting, known = [node], set()
    while waiting:
        part = waiting.pop()
        if id(part) in known:
            continue
        known.add(id(part))
        if isinstance(part, yaml.MappingNode):
            flaws += _repeated(part)
            waiting += [value for _, value in part.value]
        elif isinstance(part, yaml.SequenceNode):
            waiting += part.value
    return flaws


def _check_keys(path: Path, document: Any) -> None:
    keys = set(document) if isinstance(document, dict) else set()
    if RULES not in keys or keys - {RULES, FEATURES, MODEL} or not isinstance(document[RULES], list):
        reason = "must hold one key, `rules:`, with a list of rules, and may hold `features:` and `model:`"
        raise refused(_SETTING, path, reason)
    if not document[RULES]:
        raise refused(_SETTING, path, "holds no rule", "give at least one")
    if not isinstance(document.get(FEATURES, []), list):
        raise refused(_SETTING, path, "must hold a list of features in `features:`")
    if MODEL in keys and not (isinstance(document[MODEL], str) and document[MODEL].strip()):
        raise refused(_SETTING, path, "must hold the directory of a saved PipelineModel in `model:`")


def _list(given: list[Any], node: yaml.SequenceNode | None) -> list[Listed]:
    pairs = zip(given, node.value if node else [], strict=True)
    return [
        Listed(_with_ids_as_written(each, its), its, _label(each, number))
        for number, (each, its) in enumerate(pairs, start=1)
    ]


def _with_ids_as_written(given: Any, node: yaml.Node) -> Any:
    """The entry with the ids of its block list as texts: to YAML `NO` is false, and `00123` is 83."""
    ids = _value(_value(node, "blocked"), "ids")
    if isinstance(ids, yaml.SequenceNode):
        pairs = zip(given["blocked"]["ids"], ids.value, strict=True)
        texts = [its.value if isinstance(its, yaml.ScalarNode) else each for each, its in pairs]
        return given | {"blocked": given["blocked"] | {"ids": texts}}
    return given


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for name, value in node.value if isinstance(name, yaml.ScalarNode) and name.value == key), None)


def _label(given: Any, number: int) -> str:
    name = given.get("name") if isinstance(given, dict) else None
    return name if isinstance(name, str) else f"number {number}"


def _repeated(node: yaml.MappingNode) -> Iterator[str]:
    """Keys that stand twice: YAML keeps the last one, which would silently drop half a rule."""
    seen = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and (key.tag, key.value) in seen:
            mark = key.start_mark
            yield f"line {mark.line + 1}, column {mark.column + 1}: the key {key.value!r} stands twice; keep one"
        seen.add((key.tag, str(key.value)))


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
