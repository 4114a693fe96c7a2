"""The log: each line is an event with named fields, as logfmt for eyes or as JSON for programs that collect logs."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any

import structlog
from structlog.processors import JSONRenderer, LogfmtRenderer, format_exc_info
from structlog.stdlib import BoundLogger, ProcessorFormatter
from structlog.typing import Processor

from fraud_filter.text.terminal import printable_lines

_LOGFMT = LogfmtRenderer(key_order=["event"], bool_as_flag=False)

structlog.configure(
    processors=[structlog.stdlib.filter_by_level, format_exc_info, ProcessorFormatter.wrap_for_formatter],
    logger_factory=structlog.stdlib.LoggerFactory(),
    wrapper_class=BoundLogger,
    cache_logger_on_first_use=True,
)


def get_logger(name: str) -> BoundLogger:
    """A logger of events, such as `log.warning("data_lost", topic="payments", records=3)`.

    Args:
        name: the module's.
    """
    logger: BoundLogger = structlog.stdlib.get_logger(name)
    return logger


def formatter(log_format: str, text: str = "%(asctime)s level=%(levelname)s %(message)s") -> logging.Formatter:
    """What writes log records, those of other libraries too.

    In JSON `time`, `level`, `logger` and `message` are always there, an event's fields stand beside them with their
    values as they were given, and a stack trace is under `exception`.

    Args:
        log_format: the setting of that name, "json" or "text".
        text: a line of text, in the words of Python's `logging`; `message` is an event's logfmt.
    """
    if log_format == "json":
        text = "%(message)s"
    last: list[Processor] = [_object, JSONRenderer(default=str)] if log_format == "json" else [_lines]
    return ProcessorFormatter(fmt=text, processors=last, foreign_pre_chain=[format_exc_info])


def _object(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> dict[str, Any]:
    record = event["_record"]
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    always = {"time": time, "level": record.levelname, "logger": record.name, "message": _message(event)}
    fields = _fields(event) if event["_from_structlog"] else {}
    return fields | always | ({"exception": event["exception"]} if "exception" in event else {})


def _lines(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> str:
    """The message and a stack trace, with nothing in them that a terminal would act on."""
    trace = f"\n{event['exception']}" if "exception" in event else ""
    return printable_lines(_message(event) + trace)


def _message(event: MutableMapping[str, Any]) -> str:
    return _LOGFMT(None, "", _fields(event)) if event["_from_structlog"] else str(event["event"])


def _fields(event: MutableMapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name[0] != "_" and name != "exception"}
