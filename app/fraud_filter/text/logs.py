"""The lines of the filter's log: `key=value` for eyes, one JSON object each for programs that collect logs."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any

from fraud_filter.text.terminal import PrintableFormatter

_TEXT = "%(asctime)s level=%(levelname)s %(message)s"
#: A field of a message before its values are filled in, such as `seconds=%.1f` or `reason="%s"`.
_FIELD = re.compile(r'(\w+)=("[^"]*"|\S+)')
_PLACE = re.compile(r"%[-#0 +]*\d*(?:\.\d+)?[a-zA-Z]")


def formatter(log_format: str) -> logging.Formatter:
    """What writes log records: for "json" one object a line, else text.

    Args:
        log_format: the setting of that name.
    """
    return JsonFormatter() if log_format == "json" else PrintableFormatter(_TEXT)


class JsonFormatter(logging.Formatter):
    """Formats a log record as one line of JSON in ASCII, whatever it quotes.

    `time`, `level`, `logger` and `message` are always there. The fields of a message that was logged as
    `"event=started seconds=%.1f", 1.5` stand beside them with their values as they were given: no value can pass for
    another field, whatever it holds. A stack trace is under `exception`.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        moment = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            **_fields(record),
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of a message that begins with `event=`; none of another."""
    template = str(record.msg)
    values = record.args if isinstance(record.args, tuple) else ()
    if not template.startswith("event=") or len(_PLACE.findall(template)) != len(values):
        return {}
    left = list(values)
    fields: dict[str, Any] = {}
    for name, text in _FIELD.findall(template):
        places = _PLACE.findall(text)
        given, left = left[: len(places)], left[len(places) :]
        bare = text.strip('"')
        fields[name] = _plain(given[0]) if places == [bare] else bare % tuple(given)
    return fields


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
