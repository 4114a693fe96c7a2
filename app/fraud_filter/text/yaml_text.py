"""YAML in; texts, lists and mappings, or one kind of error out."""

from __future__ import annotations

from typing import Any

import yaml


def parse_yaml(text: str, loader: type[yaml.BaseLoader] = yaml.BaseLoader) -> Any:
    """The value of a document; each value in it is the text that is written, so that `NO` and `00123` stay as they are.

    Raises:
        yaml.YAMLError: it is no YAML. PyYAML itself gives other errors for deep nesting, and for characters that there
            are not.
    """
    try:
        return yaml.load(text, Loader=loader)  # noqa: S506 - it runs no code
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise yaml.YAMLError(f"it holds a value that can't be read: {error}") from None
