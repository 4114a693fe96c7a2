"""The files below `kafka/`, which describe topics and users: read, checked, and with the settings' names of topics."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from fraud_filter.text.yaml_text import parse_yaml

Content = TypeVar("Content", bound=BaseModel)


def read_file(file: Path, what: str, content: type[Content]) -> Content:
    """The content of a YAML file.

    Args:
        what: kind of file, such as "topics file", for messages.

    Raises:
        UsageError: the file can't be read, or does not hold what it must.
    """
    try:
        return content.model_validate(parse_yaml(file.read_text(encoding="utf-8-sig")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{what} {file} can't be read: {error}") from None
    except ValidationError as error:
        detail = error.errors()[0]
        place = ".".join(str(part) for part in detail["loc"]) or "top level"
        raise UsageError(f"{what} {file}, {place}: {detail['input']!r} is not accepted: {detail['msg']}") from None


def own_name(topic: str, settings: Settings) -> str:
    """What a topic of the files is called here: three of them have settings for their names."""
    names = {
        "payments": settings.input_topic,
        "payments.flagged": settings.flagged_topic,
        "payments.rejected": settings.rejected_topic,
    }
    return names.get(topic, topic)
