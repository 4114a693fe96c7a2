"""The filter itself: source -> parse -> rules -> route -> sink, as Spark SQL expressions. Knows no trigger.

Everything here is a column expression that Spark compiles; no Python runs per record.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter import schema as layout
from fraud_filter.config import Settings
from fraud_filter.query.block_list import is_blocked
from fraud_filter.query.json_check import JsonCheck
from fraud_filter.query.json_column import parse_json
from fraud_filter.rules.ruleset import Rule, RuleSet
from fraud_filter.schema import PaymentSchema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: The parser's marker for a record that does not fit (from_json option columnNameOfCorruptRecord).
_CORRUPT = "_corrupt_record"
#: Rules whose code is generated as one method.
_GROUP = 8
#: Microseconds, so that a payment's time is written as it was read.
_TIMESTAMP_FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"


def decide(
    records: DataFrame, schema: PaymentSchema, rules: RuleSet, settings: Settings, topic_id: str = ""
) -> DataFrame:
    """Routes each record: a flagged payment, a rejected record, or nothing.

    Args:
        records: columns `_key`, `_value` (binary), `_topic`, `_partition`, `_offset`, `_timestamp`, as `sources` gives
            them (the leading underscore keeps them apart from the payment's own fields).
        topic_id: of the input topic, for a header; "" for none.

    Returns:
        Columns `key`, `value`, `topic`, `headers`, as Spark's Kafka sink takes them; one row a written record.
    """
    judged = judge(_bounded(records, settings.max_record_bytes), schema, rules)
    reason = F.when(F.col("_too_large"), F.lit(layout.REASON_TOO_LARGE)).otherwise(F.col("_reason"))
    is_rejected, rejected = F.col("_is_rejected"), F.array(_header(layout.HEADER_REASON, reason))
    return judged.where(is_rejected | F.col("_is_flagged")).select(
        F.col("_key").alias("key"),
        F.when(is_rejected, F.col("_value")).otherwise(_flagged_json(schema).cast("binary")).alias("value"),
        F.when(is_rejected, F.lit(settings.rejected_topic)).otherwise(F.lit(settings.flagged_topic)).alias("topic"),
        F.concat(_source_headers(topic_id), F.when(is_rejected, rejected).otherwise(F.array())).alias("headers"),
    )


def _bounded(records: DataFrame, limit: int) -> DataFrame:
    """The records, those above `limit` bytes without key and value; `_too_large` tells which these are.

    A record that Kafka's producer or the output topic refuses would end the query.
    """
    key_bytes, value_bytes = (F.coalesce(F.length(name), F.lit(0)) for name in ("_key", "_value"))
    size = key_bytes + value_bytes
    bounded = (F.when(size <= limit, F.col(name)).alias(name) for name in ("_key", "_value"))
    others = (name for name in records.columns if name not in ("_key", "_value"))
    return records.select(*bounded, *others, (size > limit).alias("_too_large"))


def judge(records: DataFrame, schema: PaymentSchema, rules: RuleSet) -> DataFrame:
    """What is to be known of each record to decide about it.

    All of it is one stage of generated code (`explain` marks each operator with `*(1)`), of methods that Java compiles.

    Returns:
        The records with the payment's fields, `_reason` (why it can't be judged, or null), `_is_rejected` (whether
        there is one), `_rules` (names of those that match) and `_is_flagged` (whether there are such).
    """
    check = JsonCheck(F.col("_value").cast("string"), schema)
    parsed = records.select("*", *check.columns())
    parsed = parsed.select("*", _parse(f"{schema.ddl}, `{_CORRUPT}` STRING").alias("_payment"))
    parsed = parsed.select("*", _parse_again(schema).alias("_texts")).select("*", _wrong().alias("_wrong"))
    payment = (F.col(f"_payment.`{field.name}`").alias(field.name) for field in schema.fields)
    named = parsed.select(*records.columns, "_flaw", "_payment", "_wrong", *payment)
    # These and each group of rules stand twice in one projection: a common subexpression, for which Spark generates a
    # method of its own. Java's compiler leaves longer methods alone than some eight rules make.
    reasons, matched = _given_names(_reject_reason(schema)), _matched_rules(rules)
    is_flagged = reduce(lambda one, other: one | other, (F.size(group) > 0 for group in matched))
    return named.select(
        "*",
        F.get(reasons, F.lit(0)).alias("_reason"),
        (F.size(reasons) > 0).alias("_is_rejected"),
        F.concat(*matched).alias("_rules"),
        is_flagged.alias("_is_flagged"),
    )


def rule_column(rule: Rule) -> Column:
    """The rule as a boolean column over the payment's fields; null counts as no match."""
    if rule.when is not None:
        return F.expr(rule.when)
    return is_blocked(F.col(f"`{rule.column}`"), rule.ids)


def _parse(ddl: str) -> Column:
    return parse_json(F.col("_text"), ddl, _CORRUPT)


def _parse_again(schema: PaymentSchema) -> Column:
    """The payment's fields as texts, for the reason; null for the records that fit, which are nearly all."""
    ddl = ", ".join(f"`{field.name}` STRING" for field in schema.fields)
    return F.when(F.col(f"_payment.{_CORRUPT}").isNotNull(), _parse(ddl))


def _wrong() -> Column:
    """Names of fields that have a value of another type; null for the records that fit, empty for what is no JSON."""
    return F.when(F.col("_texts").isNotNull(), _names(F.array_except(_given("_texts"), _given("_payment"))))


def _reject_reason(schema: PaymentSchema) -> Column:
    """Why a record can't be judged, or null."""
    required = F.array(*map(F.lit, schema.required)).cast("ARRAY<STRING>")
    missing = _names(F.array_except(required, _given("_payment")))
    absent = (F.col(f"_payment.`{name}`").isNull() for name in schema.required)
    is_missing = reduce(lambda one, other: one | other, absent, F.lit(False))
    return (
        F.when(F.col("_flaw").isNotNull(), F.col("_flaw"))
        .when(F.col("_payment").isNull(), F.lit(layout.REASON_EMPTY))
        .when(
            F.col(f"_payment.{_CORRUPT}").isNotNull(),
            # Without names there are no fields at all: no object, or no JSON.
            F.coalesce(
                F.concat(F.lit(f"{layout.REASON_WRONG_TYPE}: "), F.nullif(F.col("_wrong"), F.lit(""))),
                F.lit(layout.REASON_MALFORMED),
            ),
        )
        .when(is_missing, F.concat(F.lit(f"{layout.REASON_MISSING}: "), missing))
    )


def _given(struct: str) -> Column:
    """Names of the fields of a struct that are not null. Its code is as long for many fields as for one."""
    return F.json_object_keys(F.to_json(struct))


def _matched_rules(rules: RuleSet) -> list[Column]:
    """The names of the rules that match, as an array for each group of rules."""
    names = [F.when(rule_column(rule), F.lit(rule.name)) for rule in rules.rules]
    groups = (names[first : first + _GROUP] for first in range(0, len(names), _GROUP))
    return [_given_names(*group) for group in groups]


def _given_names(*names: Column) -> Column:
    """An array of those that are not null; each stands once. `array_compact` is no part of generated code."""
    return F.array_except(F.array(*names), F.array(F.lit(None).cast("string")))


def _names(names: Column) -> Column:
    return F.array_join(names, ",")


def _flagged_json(schema: PaymentSchema) -> Column:
    fields = [F.col(f"`{field.name}`") for field in schema.fields]
    payment = F.struct(*fields, F.col("_rules").alias(layout.RULES_FIELD))
    return F.to_json(payment, {"timestampFormat": _TIMESTAMP_FORMAT})


def _source_headers(topic_id: str) -> Column:
    """Where the payment was read, as Kafka headers; the timestamp in milliseconds since 1970."""
    texts = {
        layout.HEADER_TOPIC: F.col("_topic"),
        layout.HEADER_PARTITION: F.col("_partition").cast("string"),
        layout.HEADER_OFFSET: F.col("_offset").cast("string"),
        layout.HEADER_TIMESTAMP: F.unix_millis("_timestamp").cast("string"),
    }
    if topic_id:
        texts[layout.HEADER_TOPIC_ID] = F.lit(topic_id)
    return F.array(*(_header(key, text) for key, text in texts.items()))


def _header(key: str, text: Column) -> Column:
    return F.struct(F.lit(key).alias("key"), text.cast("binary").alias("value"))
