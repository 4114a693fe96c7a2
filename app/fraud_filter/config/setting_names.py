"""Names in the environment and in files of settings that begin as ours do and are none: a slip of the pen."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from dotenv.parser import parse_stream

from fraud_filter.errors import UsageError
from fraud_filter.text.nearest import did_you_mean
from fraud_filter.text.terminal import printable

#: Names that others give: Compose files to a container's limits, Kubernetes to the addresses of a service (its
#: documentation, "Service", Discovering services); both begin with the service's name. And what tests are told.
_OTHERS = re.compile(r"FRAUD_(FILTER|TEST)_.*|.*_SERVICE_(HOST|PORT)(_.*)?|.*_PORT_\d+_(TCP|UDP|SCTP)(_.*)?")
#: Settings of former versions, and what to do instead.
GONE = {
    "rate_rows_per_second": 'give rowsPerSecond in source_options: {"rowsPerSecond": "100"}',
    "rate_partitions": 'give numPartitions in source_options: {"numPartitions": "2"}',
    "socket_server": 'give host and port in source_options: {"host": "127.0.0.1", "port": "9999"}',
    "source_format": "give the format's name as source",
    "restart_backoff_max_s": "the longest wait is 30 seconds, or restart_backoff_s where that is longer",
    "restart_reset_s": "a run of 120 seconds counts as progress",
    "monitoring": "metrics and the watchdog are always on",
    "generator_port": "give the port to `fraud-filter generate --metrics-port`",
}
#: Most characters of a wrong line that a message repeats.
_LONGEST = 40


def check(names: Iterable[str], place: str, known: set[str], prefix: str) -> None:
    """Refuses names that are those of no setting, in whatever case: with our prefix, or nearly the name of a setting.

    Args:
        place: where the names stand, such as "the environment".
        known: the names of all settings.

    Raises:
        UsageError: names each of them and the setting that is most like it, a line each.
    """
    given = {name.upper(): name for name in names}
    unknown = [name for upper, name in given.items() if _is_slip(upper, known - given.keys(), known, prefix)]
    if unknown:
        raise UsageError("\n".join(_refusal(name, place, known, prefix) for name in unknown))


def read(file: Path) -> list[str]:
    """The names in a file of settings; none where there is no such file.

    Raises:
        OSError, UnicodeDecodeError: it can't be read.
        UsageError: a line is no `NAME=value`.
    """
    if not file.is_file():
        return []
    with file.open(encoding="utf-8") as lines:
        bindings = list(parse_stream(lines))
    for binding in bindings:
        text = binding.original.string.strip()
        if binding.error or (binding.key is not None and binding.value is None):
            number = binding.original.line + len(binding.original.string) - len(binding.original.string.lstrip("\n"))
            raise UsageError(
                f"{file}, line {number}: {shortened(text)} is no NAME=value: mend the line or take it away"
            )
    return [binding.key for binding in bindings if binding.key]


def shortened(text: str) -> str:
    """The beginning of a line, up to where a value may stand: values may be secrets."""
    word = printable((text.split("=")[0].split(None, 1) or ["="])[0])
    return repr(word if len(word) <= _LONGEST else f"{word[:_LONGEST]}…")


def _is_slip(name: str, missing: set[str], known: set[str], prefix: str) -> bool:
    """Whether a name begins as ours and is none, or is nearly that of a setting which is missing beside it."""
    if name in known or _OTHERS.fullmatch(name):
        return False
    return name.startswith(prefix) or any(_is_one_letter_off(name, other) for other in missing)


def _is_one_letter_off(name: str, other: str) -> bool:
    """Whether one letter is missing, too many, or another, or two have changed places."""
    if abs(len(name) - len(other)) > 1:
        return False
    head = next(
        (at for at, pair in enumerate(zip(name, other, strict=False)) if len(set(pair)) > 1), min(len(name), len(other))
    )
    if len(name) == len(other):
        swapped = name[head : head + 2] == other[head : head + 2][::-1] and name[head + 2 :] == other[head + 2 :]
        return swapped or name[head + 1 :] == other[head + 1 :]
    longer, shorter = (name, other) if len(name) > len(other) else (other, name)
    return longer[head + 1 :] == shorter[head:]


def _refusal(name: str, place: str, known: set[str], prefix: str) -> str:
    if remedy := GONE.get(name.lower().removeprefix(prefix.lower())):
        return f"{name} in {place} is no setting any more: {remedy}"
    near = next((other for other in sorted(known) if _is_one_letter_off(name.upper(), other)), None)
    meant = f" (did you mean {near!r}?)" if near else did_you_mean(name.upper(), known, prefix)
    return f"{name} in {place} is no setting{meant}; change it or take it away (`fraud-filter run --help` lists them)"
