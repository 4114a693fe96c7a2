"""The filter itself: source -> parse -> rules -> route -> sink, as Spark SQL expressions.

Everything here is a column expression that Spark compiles; no Python runs per record.

An id on a block list is a look into a hash set that each executor holds once. Written as `IN (...)`, a list is part of
the plan: with a million ids each micro-batch would plan and ship them again. Here the plan holds the number of a
broadcast variable, and the code that Spark generates calls `HashSet.contains`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter import schema as layout
from fraud_filter.config import Settings
from fraud_filter.model.saved import SavedModel
from fraud_filter.model.scoring import add_score
from fraud_filter.query import invoke
from fraud_filter.query.invoke import active_jvm, try_eval
from fraud_filter.query.json_record import JsonRecord
from fraud_filter.query.once import Written
from fraud_filter.query.places import header, place_headers
from fraud_filter.query.velocity import TRUNCATED, add_features, add_features_in_batch, is_late
from fraud_filter.rules.language import read_predicate
from fraud_filter.rules.ruleset import Rule, RuleSet
from fraud_filter.rules.version import decision_rules_of
from fraud_filter.schema import PaymentSchema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Unicode's private use area: of these characters some is in no id.
_SEPARATORS = "".join(map(chr, range(0xE000, 0xF900)))


def is_blocked(column: Column, ids: Sequence[str]) -> Column:
    """A boolean column: is the text of `column` one of the `ids`? Null where the text is.

    The active Spark session broadcasts the ids, some 100 bytes each in the driver and in each executor.
    """
    jvm = active_jvm()
    held = invoke.broadcast(jvm, _hash_set(jvm, ids), "java.util.HashSet")
    text = invoke.expression(jvm, column.cast("string"))
    return invoke.column(jvm, invoke.call(jvm, held, "contains", invoke.data_type(jvm, "BOOLEAN"), text))


def _hash_set(jvm: Any, ids: Sequence[str]) -> Any:
    """The ids as Spark's own strings. They go to Java as one text: a call for each would take minutes."""
    separator = next(candidate for candidate in _SEPARATORS if not any(candidate in one for one in ids))
    strings = jvm.org.apache.spark.unsafe.types.UTF8String
    texts = strings.fromString(separator.join(ids)).split(strings.fromString(separator), -1)
    # asList() takes an array of objects, and py4j no other array for it.
    array = jvm.org.apache.spark.sql.catalyst.util.GenericArrayData(texts)
    objects = array.toObjectArray(invoke.data_type(jvm, "STRING"))
    return jvm.java.util.HashSet(jvm.java.util.Arrays.asList(objects))


#: Rules whose code is generated as one method.
_GROUP = 8

#: Microseconds, so that a payment's time is written as it was read.
_FORMATS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}

_TIMES = (layout.FIRST_TIME, layout.LAST_TIME)


def decide(
    records: DataFrame,
    schema: PaymentSchema,
    rules: RuleSet,
    settings: Settings,
    topic_id: str = "",
    model: SavedModel | None = None,
    written: Written | None = None,
    since: Mapping[int, int] | None = None,
    watermark_ms: int = 0,
) -> DataFrame:
    """Routes each record: a flagged payment, a rejected record, an approved payment or nothing, as `emit` says.

    Args:
        records: columns `_key`, `_value` (binary), `_topic`, `_partition`, `_offset`, `_timestamp`, as `sources` gives
            them (the leading underscore keeps them apart from the payment's own fields).
        topic_id: of the input topic, for a header; "" for none.
        model: that of the rules.
        written: payments that are decided, of which nothing is written. They count for the features of others.
        since: for records that are all there: the first offset that is decided, by partition; what comes before it is
            there for the features alone. None for a stream.
        watermark_ms: of the state of features, as `add_features` takes it.

    Returns:
        Columns `key`, `value`, `topic`, `headers`, as Spark's Kafka sink takes them; one row a written record.
    """
    bounded = _bounded(records, settings.max_record_bytes)
    if written and not rules.features:
        bounded = bounded.where(written.is_new())  # before anything is read: so a replay takes little
    remember = partial(add_features, watermark_ms=watermark_ms) if since is None else add_features_in_batch
    late = is_late(rules.features, settings, watermark_ms) if since is None and rules.features else None
    judged = judge(bounded, schema, rules, lambda parsed: remember(parsed, rules.features, settings), model, late)
    if since is not None and rules.features:
        judged = judged.where(_lies_since(since))
    if written and rules.features:
        judged = judged.where(written.is_new())
    reason = F.coalesce("_unread", "_reason")
    is_rejected, rejected = F.col("_reason").isNotNull(), F.array(header(layout.HEADER_REASON, reason))
    truncated = _truncated_header() if rules.features else F.array()
    own = _own_headers(topic_id, decision_rules_of(rules, schema, settings).version, model)
    if settings.emit == "flagged":
        judged = judged.where(is_rejected | F.col("_is_flagged"))

    def by_decision(rejected: str, flagged: str, approved: str) -> Column:
        """Of `judged`; the rules are not looked at again where what they approve is gone."""
        valid = F.when(F.col("_is_flagged"), flagged).otherwise(approved) if settings.emit == "all" else F.lit(flagged)
        return F.when(is_rejected, rejected).otherwise(valid)

    decision = F.array(header(layout.HEADER_DECISION, by_decision(layout.REJECT, layout.FLAG, layout.APPROVE)))
    return judged.select(
        F.col("_key").alias("key"),
        F.when(is_rejected, F.col("_value")).otherwise(_judged_json(schema, rules).cast("binary")).alias("value"),
        by_decision(settings.rejected_topic, settings.flagged_topic, settings.approved_topic).alias("topic"),
        F.concat(own, decision, F.when(is_rejected, rejected).otherwise(truncated)).alias("headers"),
    )


def _lies_since(since: Mapping[int, int]) -> Column:
    places = ((F.col("_partition") == number) & (F.col("_offset") >= offset) for number, offset in since.items())
    return reduce(lambda one, other: one | other, places)


def _bounded(records: DataFrame, limit: int) -> DataFrame:
    """The records, those that nobody reads without key and value; `_unread` is the reason of these, or null.

    A record above `limit` bytes may be refused by Kafka's producer or the output topic, which would end the query.
    """
    key_bytes, value_bytes = (F.coalesce(F.length(name), F.lit(0)) for name in ("_key", "_value"))
    size = key_bytes + value_bytes
    has_time = F.col("_timestamp").between(*(F.lit(time).cast("TIMESTAMP") for time in _TIMES))
    unread = F.when(size > limit, F.lit(layout.REASON_TOO_LARGE)).when(~has_time, F.lit(layout.REASON_RECORD_TIME))
    bounded = (F.when(unread.isNull(), F.col(name)).alias(name) for name in ("_key", "_value"))
    others = (name for name in records.columns if name not in ("_key", "_value"))
    return records.select(*bounded, *others, unread.alias("_unread"))


def judge(
    records: DataFrame,
    schema: PaymentSchema,
    rules: RuleSet,
    remember: Callable[[DataFrame], DataFrame] | None = None,
    model: SavedModel | None = None,
    late: Column | None = None,
) -> DataFrame:
    """What is to be known of each record to decide about it.

    Without features all of it is one stage of generated code (`explain` marks each operator with `*(1)`), of methods
    that Java compiles.

    Args:
        remember: adds the features of the rules to records with the payment's fields, `_reason` and `_is_rejected`.
        model: that of the rules.
        late: whether a payment is rejected as late; it counts for the features of others all the same.

    Returns:
        The records with the payment's fields, `_reason` (why it can't be judged, or null), `_rules` (names of those
        that match) and `_is_flagged` (whether there are such).
    """
    # Each group of rules stands twice in one projection: a common subexpression, for which Spark generates a method of
    # its own. Java's compiler leaves longer methods alone than some eight rules make.
    matched = _matched_rules(rules, rules.columns(schema))
    is_flagged = reduce(lambda one, other: one | other, (F.size(group) > 0 for group in matched))
    decided = (F.concat(*matched).alias("_rules"), is_flagged.alias("_is_flagged"))
    if not (rules.features or model):
        return _read(records, schema).select("*", *decided)
    known = read_payments(records, schema, late)
    if rules.features:
        assert remember  # noqa: S101 - whoever judges without a state leaves out the rules that need one
        known = remember(known)
    return (add_score(known, model) if model else known).select("*", *decided)


def read_payments(records: DataFrame, schema: PaymentSchema, late: Column | None = None) -> DataFrame:
    """The records with the payment's fields, `_reason` and `_is_rejected`, as `judge` tells them.

    `_is_rejected` is that no payment could be read: what is `late` has a reason, too.
    """
    return _slim(_read(records, schema), records, schema, late)


def _read(records: DataFrame, schema: PaymentSchema) -> DataFrame:
    """The records with the payment's fields and `_reason`.

    Few records need the reason. As generated code it was a quarter of the processor time that the query's
    thread takes for a micro-batch.
    """
    value = F.col("_value")
    parsed, text = records, value.cast("string")
    if schema.has_prefix:
        # In a projection of its own: its code would stand wherever the check looks at it.
        parsed, text = records.select("*", _behind_prefix(value).alias("_json")), F.col("_json")
    record = JsonRecord(schema)
    parsed = parsed.select("*", record.read(text).alias("_read"))
    payment = F.col("_read.payment")
    fields = (payment[field.name].alias(field.name) for field in schema.fields)
    reason = F.when(~F.col("_read.is_whole"), record.flaw(value, text, payment))
    return parsed.select(*records.columns, reason.alias("_reason"), *fields)


def _behind_prefix(value: Column) -> Column:
    """The JSON behind Schema Registry's prefix; null where there is no prefix."""
    has_prefix = F.startswith(value, F.lit(layout.PREFIX_BEGIN)) & (F.length(value) >= layout.PREFIX_BYTES)
    return F.when(has_prefix, F.substr(value, F.lit(layout.PREFIX_BYTES + 1))).cast("string")


def _slim(judged: DataFrame, records: DataFrame, schema: PaymentSchema, late: Column | None) -> DataFrame:
    """What a decision needs of each record, for a state that holds it: of a payment the fields, otherwise the value."""
    reason = F.col("_reason")
    is_rejected = reason.isNotNull()
    if late is not None:
        reason = F.when(~is_rejected & late, F.lit(layout.REASON_LATE)).otherwise(reason)
    value = F.when(reason.isNotNull(), F.col("_value")).alias("_value")
    own = (value if name == "_value" else F.col(name) for name in records.columns)
    fields = (F.col(f"`{field.name}`") for field in schema.fields)
    return judged.select(*own, *fields, reason.alias("_reason"), is_rejected.alias("_is_rejected"))


def rule_column(rule: Rule, columns: PaymentSchema) -> Column:
    """The rule as a boolean column over the payment's fields; null counts as no match, as does what throws."""
    if rule.when is not None:
        return try_eval(active_jvm(), F.expr(read_predicate(rule.when, columns).spark))
    return is_blocked(F.col(f"`{rule.column}`"), rule.ids)


def _matched_rules(rules: RuleSet, columns: PaymentSchema) -> list[Column]:
    """The names of the rules that match, as an array for each group of rules."""
    # What two rules have in common Spark would evaluate before both, where nothing catches what it throws: not so below
    # a condition.
    is_payment = F.col("_reason").isNull()
    names = [F.when(is_payment, F.when(rule_column(rule, columns), F.lit(rule.name))) for rule in rules.rules]
    groups = (names[first : first + _GROUP] for first in range(0, len(names), _GROUP))
    # Those that are not null; each stands once. `array_compact` is no part of generated code.
    return [F.array_except(F.array(*group), F.array(F.lit(None).cast("string"))) for group in groups]


def _judged_json(schema: PaymentSchema, rules: RuleSet) -> Column:
    fields = [F.col(f"`{field.name}`") for field in rules.columns(schema).fields]
    payment = F.struct(*fields, F.col("_rules").alias(layout.RULES_FIELD))
    return F.to_json(payment, _FORMATS)


def _own_headers(topic_id: str, version: str, model: SavedModel | None) -> Column:
    """Kafka headers: where a payment was read, its timestamp in milliseconds since 1970, by what it is decided."""
    by = [header(layout.HEADER_RULES, F.lit(version))]
    by += [header(layout.HEADER_MODEL, F.lit(model.version))] if model else []
    return F.array(*place_headers(topic_id), *by)


def _truncated_header() -> Column:
    """There is none where no window is truncated."""
    one = header(layout.HEADER_TRUNCATED, F.col(TRUNCATED))
    return F.when(F.col(TRUNCATED) != "", F.array(one)).otherwise(F.array())
