"""Times and dates as Spark SQL reads them from text, in UTC. Plain numbers: no Python datetime can hold year 294247.

The accepted forms are those of Spark's string-to-timestamp cast (SQL reference, "Datetime patterns"), tried against
Spark 4.3 in `tests/embedded/test_oracle_spark.py`.
"""

from __future__ import annotations

import datetime
import functools
import re
import zoneinfo

from fraud_filter.schema import FIRST_TIME_US, LAST_TIME_US

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
#: 1582-10-15, and the first of March of the year 0 in the Julian calendar, in days since 1970.
_GREGORIAN_BEGIN = -141_427
_JULIAN_MARCH = -719_470
_LONG = 2**63
_INT = 2**31

_DATE = r"(?P<sign>[+-]?)(?P<year>[0-9]{4,%d})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})%s)?)?"
_CLOCK = (
    r"(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{1,2})"
    r"(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]*))?(?P<zone>[^0-9.:].*)?)?)?"
)
_TIMESTAMP = re.compile(_DATE % (6, f"(?:[ T]{_CLOCK})?"), re.DOTALL)
_TIME_ONLY = re.compile(f"T?{_CLOCK}", re.DOTALL)
_DAY_ONLY = re.compile(_DATE % (7, "(?:[ T].*)?"), re.DOTALL)
_JAVA_INT = re.compile(r"[+-]?\d+")
_OFFSET = re.compile(r"([+-])([0-9]{1,2})(?::?([0-5][0-9])(?::?([0-5][0-9]))?)?")
_TRIMMED = "".join(map(chr, range(0x21))) + "\x7f"

#: Java's ZoneId.SHORT_IDS, which Spark consults.
_SHORT_ZONES = {
    **{"EST": "-05:00", "HST": "-10:00", "MST": "-07:00", "ACT": "Australia/Darwin", "AET": "Australia/Sydney"},
    **{"AGT": "America/Argentina/Buenos_Aires", "ART": "Africa/Cairo", "AST": "America/Anchorage"},
    **{"BET": "America/Sao_Paulo", "BST": "Asia/Dhaka", "CAT": "Africa/Harare", "CNT": "America/St_Johns"},
    **{"CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris"},
    **{"IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia"},
    **{"NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix"},
    **{"PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal"},
    "VST": "Asia/Ho_Chi_Minh",
}


class BeyondError(ValueError):
    """A time that Spark reads and the filter rejects."""


def timestamp_us(text: str, zoned: bool = True) -> int:
    """Microseconds since 1970 in UTC.

    A time without a date means the day on which it is read, as in Spark: a payment with one can be audited on the
    same day only.

    Args:
        zoned: accept a zone or offset (TIMESTAMP); False for TIMESTAMP_NTZ, which takes neither one nor a bare time.

    Raises:
        ValueError: Spark would give null, or the filter takes no such time.
    """
    try:
        return _parse_timestamp(text, zoned)
    except BeyondError:
        raise
    except ValueError:
        if not zoned or "GMT" not in text:
            raise
        return _parse_timestamp(text.replace("GMT", ""), zoned)  # Spark tries again so, for old producers


def taken_us(micros: int) -> int:
    """Microseconds since 1970, as they are.

    Raises:
        BeyondError: the filter takes no such time.
    """
    if not FIRST_TIME_US <= micros <= LAST_TIME_US:
        raise BeyondError(f"outside the years 0001 to 9999: {micros} microseconds")
    return micros


def _taken_days(days: int) -> int:
    taken_us(days * DAY_US)
    return days


def date_days(text: str) -> int:
    """Days since 1970.

    Raises:
        ValueError: Spark would give null, or the filter takes no such date.
    """
    for candidate in (text, text.replace("GMT", "")):
        match = _DAY_ONLY.fullmatch(candidate.strip(_TRIMMED))
        if match:
            try:
                days = _days(match)
            except ValueError:
                continue
            if -_INT <= days < _INT:  # Spark holds a date in 32 bits, and gives null for one that does not fit
                return _taken_days(days)
    if not _JAVA_INT.fullmatch(text) or not -_INT <= int(text) < _INT:
        raise ValueError(f"not a date: {text!r}")
    return _taken_days(_gregorian_days(int(text)))  # Spark 1.5 wrote dates as days, and Spark still reads them


def _parse_timestamp(text: str, zoned: bool) -> int:
    match = _TIMESTAMP.fullmatch(text.strip(_TRIMMED))
    if match:
        days = _days(match)
    else:
        match = _time_only(text) if zoned else None
        if match is None:
            raise ValueError(f"not a timestamp: {text!r}")
        days = (datetime.datetime.now(datetime.UTC).date() - datetime.date(1970, 1, 1)).days
    parts = match.groupdict()
    hour, minute, second = (int(parts.get(name) or 0) for name in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"not a time of day: {text!r}")
    zone = (parts.get("zone") or "").strip(_TRIMMED)
    if zone and not zoned:
        raise ValueError(f"a zone, where none is taken: {text!r}")
    seconds = hour * 3600 + minute * 60 + second
    micros = int((parts.get("fraction") or "")[:6].ljust(6, "0"))
    result = days * DAY_US + (seconds - _zone_offset_s(zone, days, seconds)) * SECOND_US + micros
    if not -_LONG <= result < _LONG:
        raise ValueError(f"outside the range of a timestamp: {text!r}")
    return taken_us(result)


def _time_only(text: str) -> re.Match[str] | None:
    """A time without a date; Spark takes the hour alone only behind a T, and the T only as the first character."""
    match = _TIME_ONLY.fullmatch(text.strip(_TRIMMED))
    if match is None or (match[0][0] == "T") != (text[0] == "T") or (match[0][0] != "T" and not match["minute"]):
        return None
    return match


def _days(match: re.Match[str]) -> int:
    year = int(match["year"]) * (-1 if match["sign"] == "-" else 1)
    return days_from_civil(year, int(match["month"] or 1), int(match["day"] or 1))


@functools.lru_cache(maxsize=4096)
def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970 of a date in the proleptic Gregorian calendar; the year may be anything.

    Raises:
        ValueError: there is no such day.
    """
    cycles, year_of_cycle = divmod(year - 2000, 400)  # the calendar repeats every 400 years
    date = datetime.date(2000 + year_of_cycle, month, day)
    return date.toordinal() - 719_163 + cycles * 146_097


def _gregorian_days(days: int) -> int:
    """Days since 1970 of the day that Spark 1.5 counted `days` for, which means the same year, month and day.

    Before 1582-10-15 it counted in the Julian calendar (SPARK-31557).
    """
    if days >= _GREGORIAN_BEGIN:
        return days
    cycles, left = divmod(days - _JULIAN_MARCH, 1461)  # of four years from March on: the leap day is the last
    year_of_cycle = min(left // 365, 3)
    day_of_year = left - 365 * year_of_cycle
    month = (5 * day_of_year + 2) // 153  # counted from March
    year = 4 * cycles + year_of_cycle + (month > 9)
    first = days_from_civil(year, month + 3 if month < 10 else month - 9, 1)
    return first + day_of_year - (153 * month + 2) // 5


def _zone_offset_s(zone: str, days: int, seconds: int) -> int:
    """Seconds east of UTC of a zone at a local time."""
    if zone in ("", "Z", "UTC", "GMT", "UT"):
        return 0
    zone = re.sub(r"([+-])(\d):", r"\g<1>0\2:", zone, count=1)
    zone = re.sub(r"([+-])(\d\d):(\d)$", r"\1\2:0\3", zone, count=1)
    zone = _SHORT_ZONES.get(zone, zone)
    offset = re.fullmatch(r"(?:UTC|GMT|UT)?([+-].*)", zone)
    if offset:
        return _fixed_offset_s(offset[1])
    if zone not in _regions():
        raise ValueError(f"not a time zone: {zone!r}")
    region = zoneinfo.ZoneInfo(zone)
    within = datetime.date(1, 1, 1).toordinal(), datetime.date(9999, 12, 30).toordinal()
    ordinal = min(max(days + 719_163, within[0] + 1), within[1])
    local = datetime.datetime.combine(datetime.date.fromordinal(ordinal), datetime.time(0), tzinfo=region)
    shift = (local + datetime.timedelta(seconds=seconds)).utcoffset()
    return round(shift.total_seconds()) if shift else 0


@functools.cache
def _regions() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones()) - {"Factory", "localtime"}


def _fixed_offset_s(text: str) -> int:
    match = _OFFSET.fullmatch(text)
    if match is None or (match[3] and len(match[2]) == 1):
        raise ValueError(f"not an offset: {text!r}")
    seconds = int(match[2]) * 3600 + int(match[3] or 0) * 60 + int(match[4] or 0)
    if seconds > 18 * 3600:
        raise ValueError(f"an offset beyond 18 hours: {text!r}")
    return seconds if match[1] == "+" else -seconds
