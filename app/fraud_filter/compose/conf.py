"""The folder `conf` beside the stack's `.env`: files that settings name, which the containers see by the same name."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path, PurePath

from fraud_filter.compose.stack import Stack
from fraud_filter.config import Settings, env_name
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME

#: Settings that name a file which the filter, its executors or `topics` read.
_RECORDS = ("payment_schema", "rules", "topics_file", "query")
_KAFKA = ("kafka_sasl_password_file", "kafka_ssl_ca", "kafka_ssl_certificate", "kafka_ssl_key")
_VERSION = "CONF_VERSION"
#: Where the stack's volume for checkpoints is.
_CHECKPOINTS = Path("/var/lib/fraud-filter")


def prepare(stack: Stack) -> None:
    """Makes the folder, and writes into `.env` a text that changes with its files: then containers are replaced.

    Raises:
        UsageError: it can't be made, or a file in it can't be read.
    """
    digest = hashlib.sha256()
    try:
        stack.conf.mkdir(exist_ok=True)
        files = sorted(path for path in stack.conf.rglob("*") if path.is_file() and path.suffix != ".pyc")
        for file in files:
            digest.update(f"{file.relative_to(stack.conf)}\0".encode() + file.read_bytes())
    except OSError as error:
        raise UsageError(f"{error.filename or stack.conf} can't be made or read: {error.strerror}") from None
    version = digest.hexdigest()[:16] if files else ""
    if stack.values.get(_VERSION, "") != version:
        stack.change(_VERSION, version)


def find(stack: Stack, settings: Settings, setting: str) -> Path:
    """The file on this machine that a setting names: one in the folder or one that ships, by default the latter.

    Raises:
        UsageError: it lies elsewhere, where no container sees it, or is not there.
    """
    given = _given(stack, setting)
    if not given:
        return Path(getattr(settings, setting))
    words = f"{env_name(setting)}={given}"
    parts = PurePath(given).parts
    if parts[0] == "app" and (HOME / given).is_file() and ".." not in parts:
        return HOME / given
    if parts[0] != stack.conf.name or ".." in parts:
        raise UsageError(
            f"{words}: the stack's containers see the folder {stack.conf} alone: put the file there, and give "
            f"{stack.conf.name}/{parts[-1]}"
        )
    file = stack.conf.parent / given
    if not file.is_file():
        raise UsageError(f"{words}: there is no file {file}")
    return file


def check(stack: Stack, settings: Settings) -> None:
    """Checks that the containers find what settings name.

    Raises:
        UsageError: a file is not there for them, or the checkpoint lies where they can't write.
    """
    # The secure stack gives each of its programs files of its own.
    for setting in _RECORDS if stack.secure else (*_RECORDS, *_KAFKA):
        find(stack, settings, setting)
    given, directory = _given(stack, "checkpoint"), settings.checkpoint_directory
    if given and directory and not directory.is_relative_to(_CHECKPOINTS):
        raise UsageError(
            f"{env_name('checkpoint')}={given}: the stack writes local checkpoints below {_CHECKPOINTS}, on its own "
            "volume: give such a path, or an address on another file system, or take the line away"
        )


def _given(stack: Stack, setting: str) -> str:
    name = env_name(setting)
    given = os.environ.get(name) or stack.values.get(name, "")
    if setting == "query":  # a file and its function; a module that is named with dots must be in the image
        return given.rpartition(":")[0] if ".py:" in given else ""
    return given
