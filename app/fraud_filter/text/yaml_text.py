"""YAML files in; what they hold, or words on what is wrong with it, out."""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from fraud_filter.text.nearest import did_you_mean

Form = TypeVar("Form", bound=BaseModel)

_SHOWN = 80
_HALF = re.compile("[\ud800-\udfff]")


class Entry(dict[Hashable, Any]):
    """A mapping of a document, and the line on which it begins, counted from 1."""

    line = 0


class _Loader(yaml.BaseLoader):
    """Knows texts, lists and mappings. A key that stands twice is refused, for YAML would silently keep the last; and
    so is half of a character, which can't be written as UTF-8.
    """

    def construct_scalar(self, node: Any) -> Any:
        if not node.value.isascii() and _HALF.search(node.value):
            told = "the text holds half of a character (\\ud800 to \\udfff); write all of it"
            raise yaml.constructor.ConstructorError(None, None, told, node.start_mark)
        return super().construct_scalar(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Entry:
        entry = Entry(super().construct_mapping(node, deep))
        entry.line = node.start_mark.line + 1
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                told = f"the key {key.value!r} stands twice; keep one"
                raise yaml.constructor.ConstructorError(None, None, told, key.start_mark)
            seen.add(key.value)
        return entry


def read_yaml(file: Path, form: type[Form]) -> Form:
    """The content of a file. To `form` a value is the text that is written, so that `NO` and `00123` stay as they are,
    a list, or an `Entry`.

    Raises:
        ValueError: the file can't be read, is not YAML, or has not this form; the message goes on from the file's name.
    """
    try:
        return form.model_validate(_parse(file.read_text(encoding="utf-8-sig")))
    except ValidationError as error:
        raise ValueError(f"is not accepted: {'; '.join(flaws_of(error, form))}") from None
    except yaml.YAMLError as error:
        mark, told = getattr(error, "problem_mark", None), getattr(error, "problem", error)
        where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ValueError(f"is not valid YAML{where}: {told}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"can't be read: {error}") from None


def _parse(text: str) -> Any:
    """PyYAML gives other errors than its own for deep nesting, and for characters that there are not."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - it runs no code
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise yaml.YAMLError(f"it holds a value that can't be read: {error}") from None


#: By the type of pydantic's error.
_WORDS = {
    "missing": "is missing; give it",
    "string_type": "must be a text",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must begin with a letter and have at most 64 letters, digits, - and _",
    "list_type": "must be a list, such as [a, b]",
    "too_short": "must hold at least one",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "is_instance_of": "must be a mapping of keys to values",
}


def flaws_of(error: ValueError, form: type[BaseModel]) -> list[str]:
    """What is wrong with a mapping of the form, in words."""
    return [_explain(detail, form) for detail in error.errors()] if isinstance(error, ValidationError) else [str(error)]


def _explain(detail: Any, form: Any) -> str:
    *above, last = detail["loc"] or ("",)
    where = ".".join(map(str, (*above, last)))
    if detail["type"] == "extra_forbidden":
        for key in filter(form.model_fields.get, above):
            kind = form.model_fields[key].annotation
            form = next((one for one in get_args(kind) if hasattr(one, "model_fields")), kind)
        keys = form.model_fields
        return f"{where}: unknown key{did_you_mean(str(last), keys)}; there are {', '.join(keys)}"
    reason = _WORDS.get(detail["type"], detail["msg"].removeprefix("Value error, "))
    tells = detail["type"] != "missing" and not isinstance(detail["input"], dict)
    given = f" (got {str(detail['input'])[:_SHOWN]!r})" if tells else ""
    return f"{where + ': ' if where else ''}{reason}{given}"
