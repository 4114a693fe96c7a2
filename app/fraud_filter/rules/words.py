"""The words of a rule: the functions that it may call, each with the reason for which it may, and what is left out.

A word is taken where Spark's value and the audit's are the same by construction. It has a value for every record: no
value makes it throw. It takes time linear in the record. It depends on no locale, no clock, and on no table of letters
but the one below, which both sides use.
"""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from fraud_filter.schema import DAY_US, SECOND_US

#: Letters that `lower` and `upper` know, one for one: Latin, Greek and Cyrillic. Unicode's own tables have changed from
#: one version of Java or Python to the next, and make several letters of one.
_CAPITALS = [
    letter
    for letter in map(chr, (*range(0x41, 0x5B), *range(0xC0, 0x180), *range(0x386, 0x3D0), *range(0x400, 0x460)))
    if letter.lower() != letter and letter.lower().upper() == letter
]
CAPITALS, SMALL = "".join(_CAPITALS), "".join(map(str.lower, _CAPITALS))


class Word(NamedTuple):
    """A function, by the name that Spark has for it.

    `takes`: types of its operands, or `number`, `fraction` (a DOUBLE, and no other number), `alike` (all of one type),
    `literal` (a text in the rule), `count` (a whole number in the rule); `?` marks one that may be left out, `*` one of
    any number. `gives`: a type, `same` (as its first operand) or `alike`. `looks` at each character of a text so often.
    `meaning` is what the audit makes of operands, none of which is null; None where the audit needs their type, too.
    """

    name: str
    takes: tuple[str, ...]
    gives: str
    looks: int
    why: str
    meaning: Any


def whole(towards: Callable[[Any], int]) -> Callable[[float], int]:
    """A DOUBLE as a BIGINT: within its limits, and not-a-number is 0."""

    def evaluate(value: float) -> int:
        if not math.isfinite(value):
            value = 0 if math.isnan(value) else math.copysign(2.0**63, value)
        return max(-(2**63), min(2**63 - 1, towards(value)))

    return evaluate


def _substring(text: str, first: int, count: int | None = None) -> str:
    start = max(first - 1, 0)
    return text[start:] if count is None else text[start : start + count]


def _date(us: int) -> datetime.date:
    return datetime.date(1970, 1, 1) + datetime.timedelta(us // DAY_US)


_LOWER, _UPPER = str.maketrans(CAPITALS, SMALL), str.maketrans(SMALL, CAPITALS)
_PART = "is part of a text, by numbers in the rule"
_CASE, _SOUGHT = "changes letters one for one, by one table", "looks for a text that stands in the rule"
_BIGINT, _TIME = "is a whole number within the limits of BIGINT", "is part of a time of the years 0001 to 9999, in UTC"
_SINCE = "counts days, or seconds and parts of them since 1970"
#: Names, what it takes, what it gives, looks, why, meaning.
_LISTED: tuple[tuple[str, str, str, int, str, Any], ...] = (
    ("length char_length character_length len", "STRING", "INT", 1, "counts characters", len),
    ("lower lcase", "STRING", "STRING", 13, _CASE, lambda text: text.translate(_LOWER)),
    ("upper ucase", "STRING", "STRING", 13, _CASE, lambda text: text.translate(_UPPER)),
    ("trim", "STRING", "STRING", 1, "takes away blanks at both ends", lambda text: text.strip(" ")),
    ("left", "STRING count", "STRING", 1, _PART, lambda text, count: text[:count]),
    ("right", "STRING count", "STRING", 1, _PART, lambda text, count: text[-count:] if count else ""),
    ("substring substr", "STRING count count?", "STRING", 1, _PART, _substring),
    ("concat", "STRING*", "STRING", 1, "is its operands together", lambda *texts: "".join(texts)),
    ("replace", "STRING literal literal", "STRING", 3, "makes a text no longer than it is", str.replace),
    ("contains", "STRING literal", "BOOLEAN", 2, _SOUGHT, operator.contains),
    ("endswith", "STRING literal", "BOOLEAN", 2, _SOUGHT, str.endswith),
    ("startswith", "STRING literal", "BOOLEAN", 2, _SOUGHT, str.startswith),
    ("instr", "STRING literal", "INT", 2, _SOUGHT, lambda text, sought: text.find(sought) + 1),
    ("coalesce", "alike*", "alike", 1, "is the first of its operands that is not null", None),
    ("size cardinality", "nested", "INT", 0, "counts elements; -1 where there is no array or map", None),
    ("isnan", "DOUBLE", "BOOLEAN", 0, "is true or false for every number", None),
    ("abs", "number", "same", 0, "goes round at the limits of BIGINT", None),
    ("floor", "fraction", "BIGINT", 0, _BIGINT, whole(math.floor)),
    ("ceil ceiling", "fraction", "BIGINT", 0, _BIGINT, whole(math.ceil)),
    ("hour", "TIMESTAMP", "INT", 0, _TIME, lambda us: us // (3600 * SECOND_US) % 24),
    ("minute", "TIMESTAMP", "INT", 0, _TIME, lambda us: us // (60 * SECOND_US) % 60),
    ("second", "TIMESTAMP", "INT", 0, _TIME, lambda us: us // SECOND_US % 60),
    ("year", "TIMESTAMP", "INT", 0, _TIME, lambda us: _date(us).year),
    ("month", "TIMESTAMP", "INT", 0, _TIME, lambda us: _date(us).month),
    ("day dayofmonth", "TIMESTAMP", "INT", 0, _TIME, lambda us: _date(us).day),
    ("dayofweek", "TIMESTAMP", "INT", 0, _TIME, lambda us: _date(us).isoweekday() % 7 + 1),
    ("to_date date", "TIMESTAMP", "DATE", 0, "is the midnight before a time", lambda us: us // DAY_US),
    ("datediff date_diff", "TIMESTAMP TIMESTAMP", "INT", 0, _SINCE, lambda one, two: one // DAY_US - two // DAY_US),
    ("unix_seconds", "TIMESTAMP", "BIGINT", 0, _SINCE, lambda us: us // SECOND_US),
    ("unix_millis", "TIMESTAMP", "BIGINT", 0, _SINCE, lambda us: us // 1000),
)
FUNCTIONS = {
    name: Word(names.split()[0], tuple(takes.split()), gives, looks, why, meaning)
    for names, takes, gives, looks, why, meaning in _LISTED
    for name in names.split()
}
#: The one function with a variable, which stands for each element of an array in turn.
EXISTS = "exists"

#: Why it is left out, and what to use in its place: names of functions, keywords and signs.
_REFUSED = {
    "it depends on the time of evaluation; use the record's own time, such as created_at":
        "now curdate current_date current_time current_timestamp current_timezone localtimestamp",
    "it needs several records; use a feature (docs/rules.md#features-what-the-card-did-before)":
        "approx_count_distinct array_agg avg collect_list collect_set count count_if every first first_value lag last "
        "last_value lead max max_by mean median min min_by over percentile rank row_number some std stddev sum "
        "variance window",
    "it is not deterministic, so that a record could be decided in two ways; leave it out":
        "monotonically_increasing_id rand randn random shuffle uuid",
    "it reads what is no part of the record; use its fields, features and block lists":
        "current_catalog current_database current_user input_file_name java_method reflect select session_user user "
        "version",
    "its last digits differ from one machine to the next; compare its operand, as x > 4 for sqrt(x) > 2":
        "acos asin atan atan2 cbrt cos degrees e exp ln log log10 log1p log2 pi pow power radians sin sqrt tan",
    "it takes more than a step for each character, or makes a text longer; use left, substring, concat or contains":
        "array_repeat format_string insert levenshtein lpad overlay printf repeat rpad sequence soundex space",
    "it takes its pattern apart in steps that nothing bounds; use RLIKE, LIKE, contains, instr or substring":
        "find_in_set regexp_count regexp_extract regexp_extract_all regexp_instr regexp_replace regexp_substr split "
        "split_part substring_index translate",
    "it knows letters by tables that change; use lower or upper": "collate collation initcap",
    "it reads a text as something else; give the field its type in payment.ddl":
        "date_format from_csv from_json get_json_object make_date make_timestamp parse_json parse_url to_char to_json "
        "to_number to_timestamp try_to_number try_to_timestamp url_decode",
    "it leaves the years 0001 to 9999; compare datediff(…), unix_seconds(…) or unix_millis(…)":
        "add_months date_add date_sub date_trunc dateadd from_unixtime interval last_day months_between next_day "
        "timestamp_micros timestamp_millis timestamp_seconds timestampadd timestampdiff trunc",
    "every time is in UTC; compare it as it is, or with TIMESTAMP'…'":
        "at convert_timezone from_utc_timestamp timestamp_ltz timestamp_ntz to_utc_timestamp",
    "ids are compared as they are, by `blocked:`": "base64 crc32 hash hex md5 sha sha1 sha2 unbase64 unhex xxhash64",
    "a rule compares numbers, not their bits; use %, or a BOOLEAN field": "& | ^ ~ << >>",
    "write CAST(… AS …)":
        ":: bigint binary boolean decimal double float int smallint string timestamp tinyint try_cast",
    "write the comparison with its sign, LIKE or RLIKE": "equal_null like regexp regexp_like rlike",
    "write lower(…) LIKE, with small letters": "ilike",
    "write \\ before %, _ and \\": "escape",
    "write NOT": "!",
    "write concat(…, …)": "||",
    "write a % b, or floor(a / b)": "div mod",
    "write IS NULL, `a <=> b`, or coalesce(…, false)": "distinct isnotnull isnull unknown",
    "a comparison with it is never true; write IS NULL, and leave out ELSE NULL": "null",
    "write coalesce(…, …)": "ifnull nvl",
    "write floor(x + 0.5)": "round",
    "write CASE WHEN … THEN … ELSE … END, or compare each operand": "greatest least decode if nullif nvl2",
    "write hour(…), year(…) and so on": "date_part datepart dayofyear extract from quarter weekday weekofyear",
    "write unix_seconds(…), unix_millis(…) or datediff(…, …)": "unix_date unix_micros unix_timestamp",
    "write trim(…)": "btrim ltrim rtrim",
    "write instr(text, 'a')": "charindex locate position",
    "write `field LIKE 'a' OR field LIKE 'b'`; of several records it takes a feature": "all any",
    "write array[0], or exists(array, x -> …)":
        "aggregate array_contains array_distinct array_max array_min array_position array_size arrays_overlap "
        "element_at explode filter reduce slice transform",
    "write NOT exists(array, x -> NOT …)": "forall",
    "write map['name']": "map_contains_key map_entries map_filter map_keys map_values",
    "a predicate has no name of its own; a conversion is CAST(… AS …)": "as",
    "a remark belongs into `description:`": "-- /*",
}  # fmt: skip
REFUSED = {name: reason for reason, names in _REFUSED.items() for name in names.split()}
OTHERWISE = "it is none of the words of a rule; docs/rules.md lists them"
