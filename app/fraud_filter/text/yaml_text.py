"""YAML in, plain values or one kind of error out."""

from __future__ import annotations

from typing import Any

import yaml


def parse_yaml(text: str, loader: type[yaml.SafeLoader | yaml.BaseLoader] = yaml.SafeLoader) -> Any:
    """The value of a document.

    Raises:
        yaml.YAMLError: it is no YAML, or holds a value that can't be made. PyYAML itself gives other errors for some:
            a list as a key, a date that does not exist, `!!bool x`, a number of thousands of digits, deep nesting.
    """
    try:
        return yaml.load(text, Loader=loader)  # noqa: S506 - neither loader runs code
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise yaml.YAMLError(f"it holds a value that can't be read: {error}") from None
