"""Predicates that nobody would write, drawn from all of Spark's functions, and payments made to break them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

from fraud_filter.rules import functions as rule_functions
from fraud_filter.schema import PaymentSchema

#: Texts that a rule may hold: patterns, formats, places, numbers.
_TEXTS = (
    *(
        "",
        "a",
        "%",
        "a%",
        "%a%",
        "%a%b%",
        "_%_",
        "^a",
        "a+",
        "(a+)+$",
        "(a|a)*b",
        ".*.*.*x",
        "(a?){30}a{30}",
        "[a-z]{2}\\\\d",
    ),
    *(
        "(a|b)*c",
        "[[a]",
        "(",
        "\\\\",
        "$1",
        "now",
        "today",
        "epoch",
        "tomorrow UTC",
        "yyyy-MM-dd",
        "yyyyyyyyyyyyyyyy",
        "QQQQQ",
    ),
    *(
        "hour",
        "UTC",
        "Nowhere/City",
        "+25:00",
        "UTF-8",
        "a STRING",
        "1e999999999",
        "1e-999999999",
        "9" * 400,
        "-1",
        "0",
    ),
    *("999999999", "2026-01-31", "+294247-01-10T04:00:54Z", "<a>1</a>", '{"a": 1}', "a=1&b", "%zz", "%s %d %n", "/a/b"),
)
_NUMBERS = (
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "40",
    "1000000",
    "2147483647",
    "-2147483648",
    "9223372036854775807",
    "0.5",
    "1e308D",
)
_OTHERS = (
    *(
        "NULL",
        "true",
        "X'00ff'",
        "interval 1 day",
        "interval '10' year",
        "interval 1 month",
        "timestamp'2026-01-31 12:00:00'",
    ),
    *(
        "date'2026-01-31'",
        "timestamp 'now'",
        "date 'today'",
        "timestamp '\\u006eow'",
        "current_date",
        "localtimestamp",
        "user",
    ),
    *(
        "array(1, 2)",
        "array('a', 'b')",
        "map('a', 1)",
        "named_struct('a', 1)",
        "x -> x",
        "(x, y) -> x",
        "DISTINCT amount",
        "*",
    ),
)
#: What is written otherwise than by a name and brackets; each `{}` is an operand.
_FORMS = (
    *(
        "{} + {}",
        "{} - {}",
        "{} * {}",
        "{} / {}",
        "{} % {}",
        "{} div {}",
        "- {}",
        "~ {}",
        "{} || {}",
        "{} & {}",
        "{} << {}",
    ),
    *("{} = {}", "{} <=> {}", "{} < {}", "{} LIKE {}", "{} ILIKE {}", "{} RLIKE {}", "{} LIKE ANY ({}, {})", "NOT {}"),
    *("{} LIKE {} ESCAPE '/'", "{} IN ({}, {})", "{} BETWEEN {} AND {}", "{} IS NULL", "{} IS DISTINCT FROM {}"),
    *("CASE WHEN {} THEN {} ELSE {} END", "CAST({} AS STRING)", "CAST({} AS DECIMAL(38, 10))", "CAST({} AS TIMESTAMP)"),
    *(
        "CAST({} AS DATE)",
        "CAST({} AS BIGINT)",
        "CAST({} AS BINARY)",
        "CAST({} AS INTERVAL DAY)",
        "CAST({} AS VARIANT)",
    ),
    *(
        "TRY_CAST({} AS INT)",
        "EXTRACT(HOUR FROM {})",
        "TRIM(BOTH {} FROM {})",
        "SUBSTRING({} FROM {} FOR {})",
        "{}[{}]",
    ),
    *(
        "POSITION({} IN {})",
        "OVERLAY({} PLACING {} FROM {})",
        "exists(array({}, {}), x -> x = {})",
        "{} COLLATE UNICODE",
    ),
    *("transform(split({}, {}), x -> concat(x, {}))", "filter(array({}), x -> x RLIKE {})", "left({}, 100) RLIKE {}"),
    *("aggregate(array({}, {}), {}, (a, x) -> concat(a, a))", "IDENTIFIER({})({})", "system.builtin.{}", "{} OVER ()"),
    *(
        "TIMESTAMPADD(YEAR, {}, {})",
        "TIMESTAMPDIFF(MICROSECOND, {}, {})",
        "{} AT TIME ZONE {}",
        "{}::STRING",
        "(SELECT {})",
    ),
    *(
        "from_xml({}, 'a STRING', map('rowValidationXSDPath', {}))",
        "reflect('java.lang.System', 'exit', {})",
        "${{env:{}}}",
    ),
)
_LEVELS = 3
#: How often each text stands in a payment.
_ROUNDS = 4
#: Bytes of the largest payments.
_LARGE = 2**20


def spark_functions(spark: Any) -> dict[str, str]:
    """Spark's functions, with the names of the classes that they become, as far as the registry tells."""
    registry = spark._jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry
    listed = registry.expressions().iterator()
    found = {}
    while listed.hasNext():
        entry = listed.next()
        found[entry._1()] = entry._2()._1().getClassName().rpartition(".")[2]
    return found


class RuleDrawer:
    """Draws predicates; the same ones for the same seed.

    Args:
        functions: names of Spark's functions, with the names of their classes.
        places: addresses that no rule may open.
    """

    def __init__(self, functions: dict[str, str], schema: PaymentSchema, places: Sequence[str], seed: int) -> None:
        self._choose = random.Random(seed)
        known = rule_functions.TAKEN.keys() | rule_functions.BUILDERS
        self._all = sorted(name for name in functions if name.isidentifier())
        self._taken = sorted(name for name in self._all if functions[name] in known)
        self._columns = [field.name for field in schema.fields]
        self._places = list(places)

    def draw(self) -> str:
        """One predicate; half of them of functions that a rule may use."""
        names = self._taken if self._choose.random() < 0.5 else self._all
        value = self._call(names, 1)
        form = self._choose.choice(("({}) IS NULL", "({}) = {}", "({}) <=> ({})", "{}", "length({}) > 1"))
        return form.format(value, self._operand(names, _LEVELS))

    def _call(self, names: Sequence[str], level: int) -> str:
        if self._choose.random() < 0.35:
            form = self._choose.choice(_FORMS)
            return form.format(*(self._operand(names, level) for _ in range(form.count("{}"))))
        count = self._choose.choice((0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 6))
        return f"{self._choose.choice(names)}({', '.join(self._operand(names, level) for _ in range(count))})"

    def _operand(self, names: Sequence[str], level: int) -> str:
        chance = self._choose.random()
        if chance < 0.4 or (level >= _LEVELS and chance < 0.6):
            return self._choose.choice(self._columns)
        if chance < 0.6:
            return self._call(names, level + 1)
        if chance < 0.75:
            return self._choose.choice(_NUMBERS)
        if chance < 0.92:
            return "'" + self._choose.choice(_TEXTS).replace("'", "\\'") + "'"
        return f"'{self._choose.choice(self._places)}'" if chance < 0.95 else self._choose.choice(_OTHERS)


def hostile_payments(schema: PaymentSchema) -> Iterator[bytes]:
    """Payments with values at the limits of each type, and some as large as a topic takes."""
    texts = (
        *("", "a", "1", "0", "-1", "now", "1e999999999", "1e-999999999", "-9223372036854775808", "2147483648", "NaN"),
        *("+294247-01-10T04:00:54.775807Z", "-290308-12-21T19:59:06Z", "+5881580-07-11", "-5877641-06-23"),
        *("9" * 60, "0." + "1" * 60, "\u0000\u001b[31m", "\u0390" * 9, "\ud7ff\U0001f4a9", "%zz", "{", "<a"),
        *("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "interval 1 day", "UTC", "yyyy", "\u017f", "\ufb01"),
    )  # fmt: skip
    limits: dict[str, tuple[Any, ...]] = {
        "DOUBLE": (0, -0.0, 1e308, -1e308, 5e-324, "NaN", "Infinity", "-Infinity"),
        "FLOAT": (0, 3.4e38, -3.4e38, 1e-45, "NaN"),
        "INT": (0, -(2**31), 2**31 - 1),
        "BIGINT": (0, -(2**63), 2**63 - 1),
        "SMALLINT": (0, -(2**15), 2**15 - 1),
        "TINYINT": (0, -(2**7), 2**7 - 1),
        "BOOLEAN": (True, False),
        "DECIMAL(10, 2)": (0, 99999999.99, -99999999.99),
        "DATE": (
            "9999-12-31",
            "0001-01-01",
            "+5881580-07-11",
            "-5877641-06-23",
            "2024-02-29",
            "1582-10-10",
            "0000-01-01",
        ),
        "TIMESTAMP": (
            "9999-12-31T23:59:59.999999Z",
            "0001-01-01T00:00:00Z",
            "+294247-01-10T04:00:54.775807Z",
            "-290308-12-21T19:59:06Z",
            "2024-02-29T23:59:59.999999Z",
        ),
        "TIMESTAMP_NTZ": (
            "9999-12-31T23:59:59.999999",
            "0001-01-01",
            "+294247-01-10T04:00:54.775807",
            "-290308-12-21T19:59:06",
            "2024-02-29T23:59:59.999999",
        ),
        "STRING": texts,
    }
    for at in range(_ROUNDS * len(texts)):
        own = at + at // len(texts)  # each round puts other values together
        values = {field.name: limits[field.type][own % len(limits[field.type])] for field in schema.fields}
        yield json.dumps(values).encode()
    yield json.dumps({schema.required[0]: "x"}).encode()
    strings = [field.name for field in schema.fields if field.type == "STRING"]
    for fill in ("a", "1", "%", "\u0390"):
        most = (_LARGE - 2000) // len(fill.encode()) // 2
        yield json.dumps(dict.fromkeys(strings, fill * most), ensure_ascii=False).encode()
