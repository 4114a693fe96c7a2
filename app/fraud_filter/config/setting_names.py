"""Names in the environment and in files of settings that begin as ours do and are none: a slip of the pen."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from dotenv import dotenv_values

from fraud_filter.errors import UsageError
from fraud_filter.text.nearest import did_you_mean

#: Names that others give: Compose files to a container's limits, Kubernetes to the addresses of a service (its
#: documentation, "Service", Discovering services); both begin with the service's name. And what tests are told.
_OTHERS = re.compile(r"FRAUD_(FILTER|TEST)_.*|.*_SERVICE_(HOST|PORT)(_.*)?|.*_PORT_\d+_(TCP|UDP|SCTP)(_.*)?")


def check(names: Iterable[str], place: str, known: set[str], prefix: str) -> None:
    """Refuses names with our prefix that are those of no setting, in whatever case, as settings are read.

    Args:
        place: where the names stand, such as "the environment".
        known: the names of all settings.

    Raises:
        UsageError: names each of them and the setting that is most like it, a line each.
    """
    given = (name for name in names if name.upper().startswith(prefix))
    unknown = [name for name in given if name.upper() not in known and not _OTHERS.fullmatch(name.upper())]
    if unknown:
        raise UsageError("\n".join(_refusal(name, place, known, prefix) for name in unknown))


def read(file: Path) -> list[str]:
    """The names in a file of settings; none where there is no such file.

    Raises:
        OSError, UnicodeDecodeError: it can't be read.
    """
    if not file.is_file():
        return []
    with file.open(encoding="utf-8") as lines:
        return list(dotenv_values(stream=lines, interpolate=False))


def _refusal(name: str, place: str, known: set[str], prefix: str) -> str:
    meant = did_you_mean(name.upper(), known, prefix)
    return f"{name} in {place} is no setting{meant}; change it or take it away (`fraud-filter run --help` lists them)"
