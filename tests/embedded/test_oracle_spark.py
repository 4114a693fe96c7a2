"""The oracle against Spark itself: what it reads, what it matches, and what it refuses to judge."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row

from decider import Decider
from drawn_rules import hostile_payments
from fraud_filter import schema as layout
from fraud_filter.audit.books import Books, bounded_database
from fraud_filter.config import load
from fraud_filter.oracle import Decision, Place
from fraud_filter.query import decide as query
from fraud_filter.query.sources import made_up
from fraud_filter.records import read_source
from fraud_filter.rules.ruleset import Rule, RuleSet
from fraud_filter.schema import PaymentSchema
from input_records import COLUMNS
from oracle_cases import RECORD_RULES, SCHEMA, record_values

#: Times are compared as the oracle has them.
_AS_NUMBER = {
    "TIMESTAMP": "unix_micros({0})",
    "TIMESTAMP_NTZ": "unix_micros(CAST({0} AS TIMESTAMP))",
    "DATE": "unix_date({0})",
}


def _rules(predicates: Sequence[str]) -> RuleSet:
    return RuleSet(Path("rules.yml"), tuple(Rule(f"r{at}", at + 1, when=when) for at, when in enumerate(predicates)))


def _records(spark: Any, values: Sequence[bytes | None]) -> Any:
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    rows = [(b"card", value, "payments", 0, offset, None) for offset, value in enumerate(values)]
    return spark.createDataFrame(rows, COLUMNS).withColumn("_timestamp", F.timestamp_millis(F.lit(1_700_000_000_123)))


def _judged(
    spark: Any, values: Sequence[bytes | None], rules: RuleSet, schema: PaymentSchema = SCHEMA
) -> list[Decision]:
    """Spark's decisions, in the form of the oracle's."""
    judged = query.judge(_records(spark, values), schema, rules)
    fields = [
        f"{_AS_NUMBER.get(field.type, '{0}').format(f'`{field.name}`')} AS `{field.name}`" for field in SCHEMA.fields
    ]
    rows = judged.selectExpr("_offset", "_reason", "_rules", *fields).orderBy("_offset").collect()
    return [
        Decision(None, tuple(row["_rules"]), tuple(row[3:]))
        if row["_reason"] is None
        else Decision(row["_reason"], (), ())
        for row in rows
    ]


def _plain(value: Any) -> Any:
    """Tells -0.0 from 0.0, and has the same for Spark's nested values and the oracle's."""
    if isinstance(value, Row):
        return {name: _plain(part) for name, part in value.asDict().items()}
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        is_map = value and type(value[0]) is tuple
        return {name: _plain(part) for name, part in value} if is_map else list(map(_plain, value))
    if isinstance(value, datetime.datetime):
        return repr((value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1))
    return str(value) if isinstance(value, Decimal) else repr(value)


def _shown(value: bytes | None) -> str:
    return repr(value if value is None or len(value) < 200 else value[:100] + b"..." + value[-50:])


@pytest.mark.parametrize("unit", ["", "ms"])
def test_records_are_read_as_spark_reads_them(spark: Any, unit: str) -> None:
    """Rejected or not, each field, and the rules that match."""
    values, rules, schema = record_values(), _rules(RECORD_RULES), replace(SCHEMA, time_unit=unit)
    assert len(values) > 200
    decisions = Decider(schema, rules).decide(values)
    different = []
    for value, own, its in zip(values, decisions, _judged(spark, values, rules, schema), strict=True):
        if own.reason != (its.reason and its.reason.partition(":")[0]):
            different.append(f"{_shown(value)}: oracle {own.reason or 'valid'}, Spark {its.reason or 'valid'}")
        for field, one, other in zip(SCHEMA.fields, own.fields, its.fields, strict=False):
            if _plain(one) != _plain(other) and (one, other) != ([], {}):  # a map without names
                different.append(f"{_shown(value)}: {field.name}: oracle {str(one)[:99]!r}, Spark {str(other)[:99]!r}")
        if own.rules != its.rules:
            names = sorted({*own.rules} ^ {*its.rules})
            different.append(f"{_shown(value)}: {[RECORD_RULES[int(name[1:])] for name in names]}")
    assert not different, f"{len(different)} differ\n" + "\n".join(different)


def test_block_lists_match_what_spark_matches(spark: Any) -> None:
    listed = {
        "merchant": ("casino", "12", ""),
        "installments": ("7", "-1"),
        "account": ("9223372036854775807", "42"),
        "branch": ("100",),
        "tries": ("-128",),
    }
    rules = RuleSet(
        Path("rules.yml"),
        tuple(Rule(f"r{at}", at + 1, column=name, ids=ids) for at, (name, ids) in enumerate(listed.items())),
    )
    values = [
        value for value in hostile_payments(SCHEMA, random.Random(11)) if b'"at": "0001' not in value
    ]  # Python has no such local time
    own = Decider(SCHEMA, rules).decide(values)
    its = _judged(spark, values, rules)
    assert [decision.rules for decision in own] == [decision.rules for decision in its]
    assert {name for decision in own for name in decision.rules} == {"r0", "r1", "r2", "r3", "r4"}


def test_what_spark_writes_passes_the_audit(spark: Any) -> None:
    """From the records' bytes to the written JSON and back: every field, header, key and rejected byte."""
    values = [*record_values(), *hostile_payments(SCHEMA, random.Random(11))]
    rules = _rules(["true", "amount > 100", "merchant IS NULL", "created_at >= '2024-01-01'"])
    oracle = Decider(SCHEMA, rules)
    settings = load({"max_record_bytes": 1 << 20})  # some values are larger than the default
    written = query.decide(_records(spark, values), SCHEMA, rules, settings).collect()
    assert len(written) == len(values)
    with bounded_database() as database:
        books = Books(database, [SCHEMA], {0: 0}, {0: len(values)}, examples=50)
        for row in written:
            value = None if row["value"] is None else bytes(row["value"])
            source = read_source([(header["key"], bytes(header["value"])) for header in row["headers"]])
            assert source is not None
            if row["topic"] == settings.rejected_topic:
                books.see(source, (bytes(row["key"]), value))
            else:
                fields, names = oracle.flagged_reader.read_flagged(value)
                books.see(source, fields and (bytes(row["key"]), *fields), names)
        for offset, (value, decision) in enumerate(zip(values, oracle.decide(values), strict=True)):
            books.expect(Place(0, offset, 1_700_000_000_123), b"card", value, decision)
        found = books.compare()
    findings = [
        f"{finding.reason}: {_shown(values[finding.offset])}" for kind in found["examples"].values() for finding in kind
    ]
    assert (found["lost"], found["unexpected"], found["duplicated"]) == (0, 0, 0), "\n".join(findings)
    assert found["reject_reasons"][layout.REASON_WRONG_TYPE] > 100


def test_records_of_the_rate_source_have_every_field(spark: Any) -> None:
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    made = F.to_json(F.struct(*(made_up(field.name, field.kind).alias(field.name) for field in SCHEMA.fields)))
    rows = spark.range(20).select(F.col("id").alias("value"), F.current_timestamp().alias("timestamp")).select(made)
    values = [row[0].encode() for row in rows.collect()]
    for decision in Decider(SCHEMA, _rules(["true"])).decide(values):
        assert decision.reason is None
        assert None not in decision.fields
