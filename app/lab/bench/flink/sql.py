"""Writes the filter as one Flink SQL statement, for rules and schemas that both engines read alike.

Each field is taken from the JSON once: the fields go through an array of one row, behind which Flink's planner does not
repeat the JSON functions for each use of a field. Each JSON function parses the whole text. Payments above
`max_record_bytes` are not told apart; the bench sends none.

Features are aggregates over windows in processing time: in event time Flink holds each payment back until every
partition has a later one. A query knows one window for all its aggregates, so that each window is a query of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlglot import exp

from fraud_filter import schema as layout
from fraud_filter.config import Settings, named
from fraud_filter.errors import UsageError
from fraud_filter.records import most_written_bytes
from fraud_filter.rules.features import Feature
from fraud_filter.rules.ruleset import RuleSet
from fraud_filter.schema import Field, PaymentSchema
from lab.bench.flink.plain_rules import PlainRule, plain_rules

#: How the generator writes times.
_TIME_FORMAT = "yyyy-MM-dd''T''HH:mm:ss.SSSX"
#: Flink's own escapes and quotation marks are MySQL's: backticks, and doubled single quotes.
_DIALECT = "mysql"
_KEY_AND_VALUE = {
    "key.format": "raw",
    "key.fields": "_key",
    "value.format": "raw",
    "value.fields-include": "EXCEPT_KEY",
}


def tables(settings: Settings, start: Mapping[int, int], *, transactions: str = "") -> list[str]:
    """The statements that declare the input and the output topics.

    Args:
        start: offsets, by partition of the input.
        transactions: how the names of transactions begin by which each record is written exactly once; empty: without.
    """
    offsets = ";".join(f"partition:{partition},offset:{offset}" for partition, offset in start.items())
    kafka = {"connector": "kafka", "properties.bootstrap.servers": settings.kafka_bootstrap_servers, **_KEY_AND_VALUE}
    source = {
        **kafka,
        "topic": settings.input_topic,
        "scan.startup.mode": "specific-offsets",
        "scan.startup.specific-offsets": offsets,
        "scan.topic-partition-discovery.interval": "0",
    }
    sink = {
        **kafka,
        "topic": f"{settings.flagged_topic};{settings.rejected_topic}",
        "sink.delivery-guarantee": "exactly-once" if transactions else "at-least-once",
        **(_transactions(transactions) if transactions else {}),
        "properties.linger.ms": "0",
        "properties.max.request.size": str(most_written_bytes(settings)),
    }
    metadata = "`_{0}` {1} METADATA FROM '{0}' VIRTUAL"
    columns = [("topic", "STRING"), ("partition", "INT"), ("offset", "BIGINT"), ("timestamp", "TIMESTAMP_LTZ(3)")]
    read = ", ".join(["`_key` BYTES, `_value` BYTES", *(metadata.format(*column) for column in columns)])
    written = "`_key` BYTES, `_value` BYTES, `topic` STRING METADATA, `headers` MAP<STRING, BYTES> METADATA"
    return [
        f"CREATE TABLE payments ({read}, `_now` AS PROCTIME()) WITH ({_options(source)})",
        f"CREATE TABLE decisions ({written}) WITH ({_options(sink)})",
    ]


def _transactions(prefix: str) -> dict[str, str]:
    """Names that begin so, in the strategy that Flink has by default; the broker would refuse its time-out, an hour."""
    return {
        "sink.transactional-id-prefix": prefix,
        "properties.transaction.timeout.ms": "60000",
    }


def statement(schema: PaymentSchema, rules: RuleSet, settings: Settings, topic_id: str) -> str:
    """The statement that runs until it is cancelled; `topic_id` is the input topic's, for a header.

    Raises:
        UsageError: a rule is more than plain comparisons, or a field of a type other than STRING, DOUBLE, TIMESTAMP.
    """
    conditions = {rule.name: _condition(rule) for rule in plain_rules(rules, schema)}
    parsed = [column for field in schema.fields for column in _parsed(field)]
    is_missing = " OR ".join(f"{_quoted(name)} IS NULL" for name in schema.required)
    matched = ", ".join(f"CASE WHEN {condition} THEN {_text(name)} END" for name, condition in conditions.items())
    members = [f"KEY {_text(field.name)} VALUE {_quoted(_shown(field))}" for field in schema.fields]
    members += [f"KEY {_text(feature.name)} VALUE {_quoted(feature.name)}" for feature in rules.features]
    members.append(f"KEY {_text(layout.RULES_FIELD)} VALUE JSON_ARRAY({matched} ABSENT ON NULL)")
    flagged = f"CAST(JSON_OBJECT({', '.join(members)}) AS BYTES)"
    topics = _text(settings.rejected_topic), _text(settings.flagged_topic)
    headers = _headers(topic_id, f"'{layout.REASON_MALFORMED}'"), _headers(topic_id, None)
    payments = f"""
        SELECT *{_per(rules, is_missing)}
        FROM (SELECT *, ARRAY[ROW({", ".join(value for _, value in parsed)})] AS `_payment`
              FROM (SELECT *, DECODE(`_value`, 'UTF-8') AS `_text` FROM payments))
        CROSS JOIN UNNEST(`_payment`) AS `_fields` ({", ".join(_quoted(name) for name, _ in parsed)})
    """  # noqa: S608 - names and literals are quoted by sqlglot
    return f"""
        INSERT INTO decisions
        SELECT `_key`,
               CASE WHEN {is_missing} THEN `_value` ELSE {flagged} END,
               CASE WHEN {is_missing} THEN {topics[0]} ELSE {topics[1]} END,
               CASE WHEN {is_missing} THEN {headers[0]} ELSE {headers[1]} END
        FROM ({_remembered(payments, rules.features)})
        WHERE {is_missing} OR {" OR ".join(conditions.values())}
    """  # noqa: S608 - names and literals are quoted by sqlglot


def _per(rules: RuleSet, is_missing: str) -> str:
    """The column of the key whose payments features look at; null where there is no payment."""
    if not rules.features:
        return ""
    return f", CASE WHEN NOT ({is_missing}) THEN {_quoted(rules.features[0].per)} END AS `_per`"


def _remembered(payments: str, features: Sequence[Feature]) -> str:
    """The payments with a column for each feature; those without `_per` are no payments and in nobody's window."""
    for over_ms in sorted({feature.over_ms for feature in features}):
        window = f"(PARTITION BY `_per` ORDER BY `_now` RANGE BETWEEN {_interval(over_ms)} PRECEDING AND CURRENT ROW)"
        own = [feature for feature in features if feature.over_ms == over_ms]
        columns = ", ".join(f"{_aggregate(feature)} OVER {window} AS {_quoted(feature.name)}" for feature in own)
        payments = f"SELECT *, {columns} FROM ({payments})"  # noqa: S608 - names are quoted by sqlglot
    return payments


def _interval(over_ms: int) -> str:
    days, rest_ms = divmod(over_ms, 86_400_000)
    text = (datetime.min + timedelta(milliseconds=rest_ms)).time().isoformat("milliseconds")
    return f"INTERVAL '{days} {text}' DAY(3) TO SECOND(3)"


def _aggregate(feature: Feature) -> str:
    if feature.field is None:
        if feature.kind != "count":
            what = f"the feature {feature.name!r}: {feature.kind}"
            raise UsageError(f"{named('rules')}: Flink's filter can't take {what}")
        return "COUNT(*)"
    field = _quoted(feature.field)
    return f"COUNT(DISTINCT {field})" if feature.kind == "count_distinct" else f"{feature.kind.upper()}({field})"


def _parsed(field: Field) -> list[tuple[str, str]]:
    """Names and expressions of the columns that a field is parsed into; a time is kept as text, too."""
    if not field.name.isidentifier():
        raise UsageError(f"{named('payment_schema')}: Flink's filter can't take the field name {field.name!r}")
    text = f"JSON_VALUE(`_text`, '$.{field.name}')"
    if field.type == "STRING":
        return [(field.name, text)]
    if field.type == "DOUBLE":
        return [(field.name, f"TRY_CAST({text} AS DOUBLE)")]
    if field.type == "TIMESTAMP":
        return [(field.name, f"TO_TIMESTAMP({text}, '{_TIME_FORMAT}')"), (_shown(field), text)]
    raise UsageError(
        f"{named('payment_schema')}: Flink's filter can't take the field {field.name!r} of type {field.type}; it knows "
        "STRING, DOUBLE and TIMESTAMP"
    )


def _shown(field: Field) -> str:
    """The column that is written to the flagged topic."""
    return f"_text_{field.name}" if field.type == "TIMESTAMP" else field.name


def _condition(rule: PlainRule) -> str:
    if rule.when is None:
        return f"{_quoted(rule.column)} IN ({', '.join(_text(id_) for id_ in sorted(rule.ids))})"
    tree: Any = rule.when.copy()
    for name in tree.find_all(exp.Identifier):
        name.set("quoted", True)
    return f"({tree.sql(dialect=_DIALECT)})"


def _headers(topic_id: str, reason: str | None) -> str:
    """The headers as a map; the time in milliseconds since 1970 is put together from its seconds and the rest."""
    seconds = "TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', CAST(`_timestamp` AS TIMESTAMP(3)))"
    texts = {
        layout.HEADER_TOPIC: "`_topic`",
        layout.HEADER_PARTITION: "CAST(`_partition` AS STRING)",
        layout.HEADER_OFFSET: "CAST(`_offset` AS STRING)",
        layout.HEADER_TIMESTAMP: f"CONCAT(CAST({seconds} AS STRING), DATE_FORMAT(`_timestamp`, 'SSS'))",
        layout.HEADER_TOPIC_ID: _text(topic_id),
        layout.HEADER_DECISION: _text(layout.REJECT if reason else layout.FLAG),
        **({layout.HEADER_REASON: reason} if reason else {}),
    }
    return "MAP[" + ", ".join(f"'{name}', CAST({text} AS BYTES)" for name, text in texts.items()) + "]"


def _options(options: Mapping[str, str]) -> str:
    return ", ".join(f"{_text(name)} = {_text(value)}" for name, value in options.items())


def _text(text: str) -> str:
    return exp.Literal.string(text).sql(dialect=_DIALECT)


def _quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(dialect=_DIALECT)
