"""The filter's expressions on real Spark, one record at a time, without Kafka."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter.config import Settings, load
from fraud_filter.errors import UsageError
from fraud_filter.modes import MODES
from fraud_filter.query import decide as query
from fraud_filter.query.decide import is_blocked
from fraud_filter.query.preflight import check_plan
from fraud_filter.records import most_written_bytes
from fraud_filter.rules.ruleset import load_rules
from fraud_filter.rules.version import decision_rules_of
from fraud_filter.schema import PaymentSchema, input_schema
from input_records import COLUMNS, input_records
from running import GOOD


@pytest.fixture
def settings() -> Settings:
    return load()


def _decide(spark: Any, values: Sequence[bytes | None], settings: Settings, topic_id: str = "") -> list[Any]:
    schema, rules = _parts(settings)
    return list(query.decide(input_records(spark, values), schema, rules, settings, topic_id).collect())


def _parts(settings: Settings) -> tuple[PaymentSchema, Any]:
    schema = input_schema(settings)
    return schema, load_rules(settings.rules, schema)


def _headers(row: Any) -> dict[str, str]:
    return {header["key"]: bytes(header["value"]).decode() for header in row["headers"]}


def _payment(**changes: Any) -> bytes:
    return json.dumps({name: value for name, value in {**GOOD, **changes}.items() if value is not ...}).encode()


def _twice(name: str, value: Any) -> bytes:
    """A payment that has a member twice; a parser that takes the last sees one that matches no rule."""
    return b"{" + json.dumps({name: value}).encode()[1:-1] + b", " + _payment(**{name: GOOD.get(name, 1)})[1:]


#: Changes of a payment that matches no rule, and the rules that match then.
MATCHES: tuple[tuple[dict[str, Any], list[str]], ...] = (
    ({"amount": 5000}, ["large-amount"]),
    ({"merchant_category": "cash_withdrawal", "country": "BR", "amount": 300}, ["foreign-cash"]),
    (
        {"merchant_category": "gambling", "created_at": "2026-03-01T03:00:00Z", "amount": 9000},
        ["large-amount", "night-gambling"],
    ),
    ({"merchant_category": "gambling", "created_at": "2026-03-01T01:00:00-05:00", "amount": 300}, []),
    ({"amount": 0}, ["invalid-amount"]),
    ({"payment_id": "pay-blocked-0002"}, ["isPaymentFlagged"]),
    ({"card_id": "card-stolen-0001"}, ["stolen-card"]),
    ({"card_country": None, "merchant_category": "cash_withdrawal", "amount": 900}, []),
)


def test_flagged_payments_carry_their_rules_in_the_order_of_the_file(spark: Any, settings: Settings) -> None:
    rows = _decide(spark, [_payment(), *(_payment(**changes) for changes, _ in MATCHES)], settings)
    found = [(int(_headers(row)["source.offset"]), json.loads(bytes(row["value"]))["rules"]) for row in rows]
    assert found == [(at, rules) for at, (_, rules) in enumerate(MATCHES, 1) if rules]


def test_a_flagged_record_is_the_payment_with_key_topic_and_headers(spark: Any, settings: Settings) -> None:
    created_at = "2026-03-01T12:00:00.123456Z"
    schema, rules = _parts(settings)
    value = _payment(amount=5000, extra="ignored", merchant=None, created_at=created_at)
    (row,) = _decide(spark, [value], settings)
    assert row["topic"] == "payments.flagged"
    assert bytes(row["key"]) == b"k0"
    expected = {**GOOD, "amount": 5000.0, "created_at": created_at, "rules": ["large-amount"]}
    del expected["merchant"]
    assert json.loads(bytes(row["value"])) == expected
    assert _headers(row) == {
        "source.topic": "payments",
        "source.partition": "1",
        "source.offset": "0",
        "source.timestamp": "1700000000123",
        "rules.version": decision_rules_of(rules, schema, settings).version,
        "decision": "flag",
    }


def test_each_record_gets_a_decision_where_all_are_asked_for(spark: Any, settings: Settings) -> None:
    all_of_them = settings.model_copy(update={"emit": "all"})
    rows = _decide(spark, [_payment(), _payment(amount=5000), b"bad"], all_of_them)
    told = [(row["topic"], _headers(row)["decision"], _headers(row).get("reject.reason")) for row in rows]
    assert told == [
        ("payments.approved", "approve", None),
        ("payments.flagged", "flag", None),
        ("payments.rejected", "reject", "malformed-json"),
    ]
    assert json.loads(bytes(rows[0]["value"])) == {**GOOD, "created_at": "2026-03-01T12:00:00.000000Z", "rules": []}


#: Types of an array's elements, with the text that is written with the most bytes for each one that was read.
GROWING = (
    *(("TIMESTAMP", "1"), ("TIMESTAMP", '"2026-11-27"'), ("TIMESTAMP_NTZ", '"2026-11-27"'), ("DATE", '"2026-11-27"')),
    *(
        ("DECIMAL(38, 18)", "1"),
        ("DECIMAL(38, 37)", "-1"),
        ("DECIMAL(38, 0)", "1e37"),
        ("DECIMAL(10, 0)", "1e9"),
        ("DOUBLE", "1"),
        ("FLOAT", "1"),
    ),
    *(("DOUBLE", "1e9"), ("FLOAT", "123456789"), ("BIGINT", "1"), ("BOOLEAN", "true"), ("STRING", '"\\u0001"')),
    *(("STRING", r'"\"\\"'), ("STRING", '"\U0001f600"'), ("STRUCT<a: DECIMAL(38, 37)>", '{"a":1}')),
    ("MAP<STRING, TIMESTAMP>", '{"":1}'),
)


def test_a_decision_has_no_more_bytes_than_the_topics_must_take(spark: Any, tmp_path: Path) -> None:
    ddl, rules = tmp_path / "payment.ddl", tmp_path / "rules.yml"
    settings = load({"payment_schema": ddl, "rules": rules, "time_unit": "s"})
    fields, values, most = [], [], []
    for at, (kind, text) in enumerate(GROWING):
        fields.append(f"many{at:02} ARRAY<{kind}>")
        ddl.write_text(fields[-1])
        most.append(most_written_bytes(settings))
        element = text.encode() + b","
        count = (settings.max_record_bytes - 20) // len(element)
        values.append(b'{"many%02d":[' % at + element * count + text.encode() + b"]}")
        assert len(values[-1]) <= settings.max_record_bytes
    ddl.write_text(",".join(fields))
    rules.write_text("rules:\n  - {name: any, when: many00 IS NULL OR many00 IS NOT NULL}\n")
    for row, (kind, _), limit in zip(_decide(spark, values, settings), GROWING, most, strict=True):
        assert _headers(row)["decision"] == "flag", kind
        headers = sum(len(header["key"]) + len(header["value"]) for header in row["headers"])
        assert len(row["key"]) + len(row["value"]) + headers < limit - 30_000, kind


def test_every_written_record_tells_the_topic_s_id(spark: Any, settings: Settings) -> None:
    written = _decide(spark, [_payment(amount=5000), b"bad"], settings, "x-8_ZhQ")
    assert [_headers(row)["source.topic_id"] for row in written] == ["x-8_ZhQ"] * 2


#: What can't be judged, and why; `hostile_records` has more, without what stands after the colon.
REJECTED: tuple[tuple[bytes | None, str], ...] = (
    (None, "empty-record"),
    (b"", "empty-record"),
    (b"no json", "malformed-json"),
    (b"{}", "missing-field: payment_id,card_id,amount,currency,country,created_at"),
    (_payment(amount=None, country=...), "missing-field: amount,country"),
    (_payment(amount=True, created_at="yesterday"), "wrong-type: amount,created_at"),
    (_payment() + b"\n" + _payment(amount=9999), "trailing-content"),
    (_payment() + b"]" + _payment(amount=9999)[:-1] + b"]", "trailing-content"),
    (_twice("amount", 9999), "duplicate-key: amount"),
    (_twice("extra", 1).replace(b'"extra": 1', b'"\\u0065xtra": "1"', 1), "duplicate-key: extra"),
    (_payment(card_id=7, merchant={"x": 1}), "wrong-type: card_id,merchant"),
    (_twice("line\nbreak", 1), "duplicate-key: line?break"),
    (_twice("n" * 1000, 1), "duplicate-key: " + "n" * 100),
    (_payment(extra={"a": 1})[:-2] + b', "a": 2}}', "duplicate-key"),
)


def test_what_can_not_be_judged_is_rejected_with_its_bytes_and_the_reason(spark: Any, settings: Settings) -> None:
    rows = _decide(spark, [value for value, _ in REJECTED], settings)
    assert {row["topic"] for row in rows} == {"payments.rejected"}
    found = [(_headers(row)["source.offset"], row["key"], row["value"], _headers(row)["reject.reason"]) for row in rows]
    assert found == [(str(at), f"k{at}".encode(), *case) for at, case in enumerate(REJECTED)]


def test_a_schema_id_is_cut_off_and_stays_in_what_is_rejected(spark: Any) -> None:
    settings, prefix = load({"record_format": "json-registry"}), b"\0\0\0\1\xff"
    cases: list[tuple[bytes | None, str]] = [(prefix + (value or b""), reason) for value, reason in REJECTED]
    cases += [(value, "no-schema-id") for value in (b"", prefix[:4], _payment(amount=9000), b"\1" + prefix[1:])]
    cases.append((None, "empty-record"))
    flagged, *rows = _decide(spark, [prefix + _payment(amount=9000), *(value for value, _ in cases)], settings)
    assert json.loads(bytes(flagged["value"])) == {**GOOD, "amount": 9000.0, "rules": ["large-amount"]} | {
        "created_at": "2026-03-01T12:00:00.000000Z"
    }
    assert [(row["value"], _headers(row)["reject.reason"]) for row in rows] == cases


def test_the_schema_file_decides_what_a_payment_is(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "payment.ddl").write_text("offset BIGINT NOT NULL, geo STRUCT<lat: DOUBLE>, tags ARRAY<STRING>")
    (tmp_path / "rules.yml").write_text(
        "rules:\n  - {name: north, when: geo.lat > 60}\n  - {name: listed, blocked: {column: offset, ids: [7]}}\n"
    )
    settings = load({"payment_schema": tmp_path / "payment.ddl", "rules": tmp_path / "rules.yml"})
    values = [b'{"offset": 7, "geo": {"lat": 61.5}, "tags": ["a"]}', b'{"offset": 8}', b'{"geo": {"lat": 1}}']
    flagged, rejected = _decide(spark, values, settings)
    assert json.loads(bytes(flagged["value"])) == {
        "offset": 7, "geo": {"lat": 61.5}, "tags": ["a"], "rules": ["north", "listed"],
    }  # fmt: skip
    assert _headers(rejected)["reject.reason"] == "missing-field: offset"
    assert _headers(rejected)["source.offset"] == "2"


def test_a_schema_may_require_nothing(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "payment.ddl").write_text("amount DOUBLE, card STRING")
    (tmp_path / "rules.yml").write_text("rules:\n  - {name: large, when: amount > 60}\n")
    settings = load({"payment_schema": tmp_path / "payment.ddl", "rules": tmp_path / "rules.yml"})
    (flagged,) = _decide(spark, [b"{}", b'{"amount": 61}', b'{"amount": 1}'], settings)
    assert json.loads(bytes(flagged["value"])) == {"amount": 61.0, "rules": ["large"]}


@pytest.mark.parametrize("record_format", [pytest.param("json", marks=pytest.mark.exhaustive), "json-registry"])
@pytest.mark.parametrize(
    ("more_rules", "more_fields"), [pytest.param(0, 0, marks=pytest.mark.exhaustive), (194, 0), (0, 50)]
)
def test_the_query_is_one_stage_of_code_that_java_compiles(
    spark: Any, tmp_path: Path, more_rules: int, more_fields: int, record_format: str
) -> None:
    schema = tmp_path / "payment.ddl"
    fields = (f"more_{number} {('STRING', 'DOUBLE', 'TIMESTAMP')[number % 3]}" for number in range(more_fields))
    schema.write_text(", ".join([load().payment_schema.read_text().strip().rstrip(","), *fields]))
    rules = tmp_path / "rules.yml"
    texts = (
        f"  - {{name: rule-{number}, when: \"merchant_category = 'category-{number}' AND country <> card_country\"}}\n"
        for number in range(more_rules)
    )
    rules.write_text(load().rules.read_text() + "\n" + "".join(texts))
    shutil.copy(load().rules.with_name("blocked-cards.txt"), tmp_path)
    planned = _planned(spark, rules, schema, record_format)
    plan = planned.executedPlan().toString().splitlines()
    operators = [line.lstrip("+- ") for line in plan if line.strip() and "Scan" not in line]
    assert len(operators) > 4
    assert [line for line in operators if not line.startswith("*(1)")] == []
    stages = planned.debug().codegenToSeq()
    assert stages.size() == 1
    assert 0 < stages.head()._3().maxMethodCodeSize() < 8000  # HotSpot's DontCompileHugeMethods


def test_each_payment_is_parsed_once(spark: Any, settings: Settings) -> None:
    """Pushed below the projection, the filter would repeat the parser once for each use of a field."""
    code = _planned(spark, settings.rules).debug().codegenToSeq().head()._2()
    assert code.count(".readTree(") == 1


def test_the_reason_of_a_rejection_is_no_part_of_the_generated_code(spark: Any, settings: Settings) -> None:
    """Spark writes the code again for each micro-batch, and few records need this part of it."""
    plan = _planned(spark, settings.rules)
    assert "jsonObjectKeys" in plan.executedPlan().toString()
    assert "jsonObjectKeys" not in plan.debug().codegenToSeq().head()._2()


def _planned(spark: Any, rules_file: Path, schema_file: Path | None = None, record_format: str = "json") -> Any:
    own = {"rules": rules_file, "payment_schema": schema_file or load().payment_schema, "record_format": record_format}
    settings = load(own)
    schema, rules = _parts(settings)
    records = spark.createDataFrame(spark.sparkContext.emptyRDD(), COLUMNS)
    return query.decide(records, schema, rules, settings)._jdf.queryExecution()


def test_a_rule_with_a_lambda_runs_outside_the_stage(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "payment.ddl").write_text("amount DOUBLE NOT NULL, tags ARRAY<STRING>")
    (tmp_path / "rules.yml").write_text("rules:\n  - {name: tagged, when: 'exists(tags, tag -> tag = \"hot\")'}\n")
    settings = load({"payment_schema": tmp_path / "payment.ddl", "rules": tmp_path / "rules.yml"})
    (flagged,) = _decide(spark, [b'{"amount": 1, "tags": ["hot"]}', b'{"amount": 2, "tags": []}'], settings)
    assert json.loads(bytes(flagged["value"]))["rules"] == ["tagged"]


def test_a_record_with_an_impossible_time_of_its_own_is_rejected(spark: Any, settings: Settings) -> None:
    schema, rules = _parts(settings)
    rows = [(b"k", _payment(amount=6000), "payments", 1, 0, None)]
    stamped = F.timestamp_millis(F.lit(253_402_300_800_000))
    records = spark.createDataFrame(rows, COLUMNS).withColumn("_timestamp", stamped)
    [row] = query.decide(records, schema, rules, settings).collect()
    assert _headers(row)["reject.reason"] == "record-time"
    assert (row["key"], row["value"]) == (None, None)
    assert _headers(row)["source.timestamp"] == "253402300800000"


def test_a_long_block_list_stays_out_of_the_plan(spark: Any) -> None:
    ids = [*(f"card-{number:06}" for number in range(100_000)), "with\nline break", "wíth ümlauts", ""]
    listed = is_blocked(F.col("card"), ids)
    cards = ["card-000000", "card-099999", "card-100000", "with", "with\nline break", "wíth ümlauts", "", None]
    judged = spark.createDataFrame([(card,) for card in cards], "card STRING").select(listed.alias("blocked"))
    assert [row.blocked for row in judged.collect()] == [True, True, False, False, True, True, True, None]
    assert len(judged._jdf.queryExecution().toString()) < 5000


@pytest.mark.parametrize(
    ("mode", "what", "make", "others"),
    [
        ("continuous", r"a deduplication \(dropDuplicates\)", lambda one: one.dropDuplicates(["value"]), "micro-batch"),
        ("async-progress", r"a deduplication \(dropDuplicates", lambda one: one.dropDuplicates(["value"]), "real-time"),
        ("continuous", "an aggregation", lambda one: one.groupBy("value").count(), "real-time"),
        ("continuous", "a watermark", lambda one: one.withWatermark("timestamp", "1 second"), "real-time"),
    ],
)
def test_what_a_mode_can_not_run_is_refused_in_words(spark: Any, mode: Any, what: str, make: Any, others: Any) -> None:
    made = make(spark.readStream.format("rate").load())
    with pytest.raises(UsageError, match=rf"{what}.*which {mode} mode can't run"):
        check_plan(made, MODES[mode])
    check_plan(made, MODES[others])
