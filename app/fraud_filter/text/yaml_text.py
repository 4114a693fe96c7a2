"""YAML in; texts, lists and mappings, or one kind of error out."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

import yaml

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


def parse_yaml(text: str) -> Any:
    """The value of a document: texts as they are written, so that `NO` and `00123` stay as they are, lists, and each
    mapping as an `Entry`.

    Raises:
        yaml.YAMLError: it is no YAML. PyYAML itself gives other errors for deep nesting, and for characters that there
            are not.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - it runs no code
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise yaml.YAMLError(f"it holds a value that can't be read: {error}") from None
