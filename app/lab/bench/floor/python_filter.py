"""The filter in plain Python, record by record: what the floor decides with. Knows no Kafka.

Payments are read by the audit's quick reader, predicates become Python code once, by sqlglot's own Python generator,
which has SQL's three-valued logic.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sqlglot.executor.env import ENV
from sqlglot.executor.python import PythonExecutor

from fraud_filter import schema as layout
from fraud_filter.config import Settings
from fraud_filter.oracle.payments import PaymentReader
from fraud_filter.records import is_too_large
from fraud_filter.rules.ruleset import RuleSet
from fraud_filter.schema import PaymentSchema
from lab.bench.floor.plain_rules import PlainRule, plain_rules

_HOUR_US = 3_600_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Fields = dict[str, Any]


class Written(NamedTuple):
    """A record to write; `reason` is empty for a flagged payment."""

    key: bytes | None
    value: bytes | None
    reason: str


class PythonFilter:
    """Decides about one record after the other.

    Raises:
        UsageError: a rule is more than plain comparisons, or the schema has a type that the reader does not know.
    """

    def __init__(self, schema: PaymentSchema, rules: RuleSet, settings: Settings) -> None:
        self._settings = settings
        self._reader = PaymentReader(schema)
        self._names = tuple(field.name for field in schema.fields)
        self._times = tuple(field.name for field in schema.fields if field.type == "TIMESTAMP")
        self._rules = [(rule.name, _matcher(rule)) for rule in plain_rules(rules, schema)]

    def decide(self, key: bytes | None, value: bytes | None) -> Written | None:
        """What to write of a record; None when nothing."""
        if is_too_large(key, value, self._settings.max_record_bytes):
            return Written(None, None, layout.REASON_TOO_LARGE)
        reading = self._reader.read(value)
        if reading.reason is not None:
            return Written(key, value, reading.reason)
        fields = dict(zip(self._names, reading.fields, strict=True))
        matched = [name for name, matches in self._rules if matches(fields)]
        if not matched:
            return None
        for name in self._times:
            if fields[name] is not None:
                fields[name] = _time_text(fields[name])
        fields[layout.RULES_FIELD] = matched
        return Written(key, json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode(), "")


def _matcher(rule: PlainRule) -> Callable[[Fields], Any]:
    if rule.when is None:
        column, ids = rule.column, rule.ids
        return lambda fields: fields[column] in ids
    executor: Any = PythonExecutor
    code = executor().generate(rule.when)
    names: dict[str, Any] = {**ENV, "HOUR": lambda us: None if us is None else us // _HOUR_US % 24}

    def matches(fields: Fields) -> Any:
        names["scope"] = {None: fields}  # where the generated code looks for columns
        return eval(code, names)  # noqa: S307 - compiled by sqlglot from a predicate of plain comparisons

    return matches


def _time_text(us: int) -> str:
    """Microseconds since 1970 as ISO 8601 in UTC."""
    return (_EPOCH + timedelta(microseconds=us)).isoformat(timespec="microseconds").replace("+00:00", "Z")
