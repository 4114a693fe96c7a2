"""Times and dates as the filter reads them from text: ISO 8601, UTC where no offset is given."""

from __future__ import annotations

import datetime
import re

from fraud_filter.schema import FIRST_TIME_US, FORMS, LAST_TIME_US

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_FORMS = {name: re.compile(form) for name, form in FORMS.items()}
_PARTS = re.compile(r"(.{10})(?:.(..):(..)(?::(..)(?:\.([0-9]+))?)?)?(?:Z|([+-])(..):?(..)?)?")


def timestamp_us(text: str, kind: str = "TIMESTAMP") -> int:
    """Microseconds since 1970 in UTC; further digits are cut off.

    Args:
        kind: TIMESTAMP or TIMESTAMP_NTZ, which takes no offset.

    Raises:
        ValueError: the filter takes no such time.
    """
    match = _PARTS.fullmatch(text) if _FORMS[kind].fullmatch(text) else None
    if match is None:
        raise ValueError(f"not a time: {text!r}")
    day, hour, minute, second, fraction, sign, offset_h, offset_min = match.groups(default="0")
    seconds = int(hour) * 3600 + int(minute) * 60 + int(second)
    offset = int(offset_h) * 3600 + int(offset_min) * 60
    seconds += offset if sign == "-" else -offset
    return taken_us(date_days(day) * DAY_US + seconds * SECOND_US + int(fraction[:6].ljust(6, "0")))


def date_days(text: str) -> int:
    """Days since 1970.

    Raises:
        ValueError: the filter takes no such date.
    """
    if not _FORMS["DATE"].fullmatch(text):
        raise ValueError(f"not a date: {text!r}")
    return datetime.date.fromisoformat(text).toordinal() - _EPOCH


def taken_us(micros: int) -> int:
    """Microseconds since 1970, as they are.

    Raises:
        ValueError: the filter takes no such time.
    """
    if not FIRST_TIME_US <= micros <= LAST_TIME_US:
        raise ValueError(f"outside the years 0001 to 9999: {micros} microseconds")
    return micros
