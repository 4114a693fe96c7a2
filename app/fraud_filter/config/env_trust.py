"""Whether a file of settings may be believed: who could have written it, and what in it would run code."""

from __future__ import annotations

import json
import os
import re
import stat
from functools import cache
from pathlib import Path

import click
from dotenv import dotenv_values

from fraud_filter.errors import UsageError
from fraud_filter.text.terminal import printable

#: Settings that hold options of Spark and of Kafka's clients, as JSON.
_OPTIONS = ("FRAUD_SPARK_CONF", "FRAUD_KAFKA_SOURCE_OPTIONS", "FRAUD_KAFKA_SINK_OPTIONS")
#: A quantity, a switch, or a word of a closed set: a value that names no class, file, address or program.
_PLAIN = re.compile(
    r"-?\d+(\.\d+)?\s*([kmgtp]?b?|ns|us|ms|s|m|min|h|d|%)|true|false|none|gzip|snappy|lz4|zstd|fair|fifo|all|"
    r"earliest|latest|read_(un)?committed",
    re.IGNORECASE,
)
#: Options that take files or programs, which may have a plain name as well.
_PLACES = re.compile(
    r"class\.?path|librarypath|options|jar|files?\b|archives|package|repositor|plugin|python|command|script|listener|"
    r"executorenv|classes?\b|\.dir|home",
    re.IGNORECASE,
)


def check(file: Path, *, named: bool, home: Path) -> None:
    """Refuses a file that others could have written; says, or refuses, what in an unnamed one would run code.

    Args:
        file: the settings; one that is not there, or no regular file, is not looked at.
        named: whether the user named it; else it is what the current directory happens to have.
        home: the checkout, whose own file is as good as its code: there a line on stderr tells.

    Raises:
        UsageError: it is not to be believed; says what to do.
    """
    try:
        found = file.stat()
    except OSError:
        return
    if not stat.S_ISREG(found.st_mode):
        return
    if found.st_uid not in (os.geteuid(), 0, home.stat().st_uid):
        raise UsageError(
            f"{file} belongs to another user (id {found.st_uid}): copy what is right in it to a file of yours"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(
            f"{file} can be written by others, and could make this program run their code: chmod go-w {file}"
        )
    running = [] if named else runs_code(file)
    if not running:
        return
    told = printable(f"{file.absolute()} sets what can run code: {', '.join(running)}")
    if file.resolve() != (home / file.name).resolve():
        raise UsageError(f"{told}: look at it, then name it: FRAUD_ENV_FILE={file}")
    _tell(told)


def runs_code(file: Path) -> list[str]:
    """The options in a file that could run code, each with its value; a file that can't be read has none."""
    try:
        with file.open(encoding="utf-8") as lines:
            values = dotenv_values(stream=lines, interpolate=False)
    except (OSError, UnicodeDecodeError):
        return []
    found = []
    for name, value in values.items():
        if name.upper() in _OPTIONS and value:
            try:
                options = json.loads(value)
                pairs = options.items()
            except (ValueError, RecursionError, AttributeError):
                continue  # it is refused where it is read
            found += [f"{name.upper()} {key}={text}" for key, text in pairs if _could_run(str(key), str(text))]
    return found


def _could_run(key: str, value: str) -> bool:
    return bool(_PLACES.search(key)) or not _PLAIN.fullmatch(value.strip())


@cache
def _tell(line: str) -> None:
    """Once in the life of the program, however often settings are read."""
    click.echo(f"fraud-filter: {line}", err=True)
