"""What a setting's value can be: its type with its check, and what a refused one is told."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator
from pydantic_settings import NoDecode

from fraud_filter.config.client_options import refuse_kafka, refuse_spark
from fraud_filter.home import HOME

ModeName = Literal["micro-batch", "async-progress", "continuous", "real-time"]
SourceKind = Literal["kafka", "rate", "socket", "format"]
SinkName = Literal["kafka", "console", "memory"]

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
#: A name or an IPv4 address, or an IPv6 address in brackets; then the port.
_SERVER = re.compile(r"(?:[^\s,:/\[\]]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})")
_DURATION = re.compile(r"(\d+) (millisecond|second|minute|hour|day)s?")
_UNIT_S = {"millisecond": 0.001, "second": 1, "minute": 60, "hour": 3600, "day": 86_400}


def _topic(name: str) -> str:
    if not _TOPIC.fullmatch(name):
        raise ValueError("a Kafka topic name has 1 to 249 letters, digits, dots, underscores or hyphens")
    return name


def _servers(servers: str) -> str:
    if not all(map(_is_server, servers.split(","))):
        raise ValueError(
            "expected host:port, several separated by commas, such as 127.0.0.1:9092 or [::1]:9092; ports are 1 to "
            "65535"
        )
    return servers


def _is_server(server: str) -> bool:
    found = _SERVER.fullmatch(server)
    return found is not None and 0 < int(found[1]) <= 65_535


def _duration(text: str) -> str:
    if not _DURATION.fullmatch(text):
        raise ValueError("expected a Spark interval such as '5 seconds' or '500 milliseconds'")
    return text


def duration_s(text: str) -> float:
    """The seconds of a checked interval such as '5 minutes'."""
    match = _DURATION.fullmatch(text)
    assert match  # noqa: S101 - the settings hold checked intervals only
    return int(match[1]) * _UNIT_S[match[2]]


def _options(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError('expected a JSON object, such as {"key": "value"}') from None


def _shipped(file: Path) -> Path:
    """A file that ships is found by its name in the checkout, such as app/rules-velocity.yml, from any directory."""
    with suppress(OSError):  # what is no name of a file is told where it is read
        shipped = HOME / file
        if not file.is_absolute() and shipped.is_file() and (not file.exists() or file.samefile(shipped)):
            return shipped
    return file


def _absolute(file: str) -> str:
    return file and str(Path(file).absolute())


Topic = Annotated[str, AfterValidator(_topic)]
Duration = Annotated[str, AfterValidator(_duration)]
Options = Annotated[dict[str, str], NoDecode, BeforeValidator(_options)]
KafkaSourceOptions = Annotated[Options, AfterValidator(partial(refuse_kafka, sink=False))]
KafkaSinkOptions = Annotated[Options, AfterValidator(partial(refuse_kafka, sink=True))]
SparkConf = Annotated[Options, AfterValidator(refuse_spark)]
Servers = Annotated[str, AfterValidator(_servers)]
#: A file of the user's, or by its name in the checkout one that ships.
ShippedFile = Annotated[Path, AfterValidator(_shipped)]
#: A file that is read by processes which start in other directories, too; empty for none.
AbsoluteFile = Annotated[str, AfterValidator(_absolute)]
