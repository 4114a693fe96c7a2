"""Records that nobody meant to send: odd texts, picked by hand and by type, and what chance makes of them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from decimal import Context, Decimal
from pathlib import Path

from fraud_filter.oracle.payments import PaymentReader
from fraud_filter.schema import Field, PaymentSchema
from fraud_filter.text.ddl import parse_columns

#: A field of every type, and rules that see what was read of each.
SCHEMA_FILE = """\
payment_id STRING NOT NULL, merchant STRING, amount DOUBLE, installments INT, account BIGINT, online BOOLEAN,
fee DECIMAL(10, 2), created_at TIMESTAMP, day DATE, ratio FLOAT, branch SMALLINT, tries TINYINT,
local_time TIMESTAMP_NTZ, tags ARRAY<STRING>, counts MAP<STRING, INT>,
basket STRUCT<total: DECIMAL(5, 1), items: ARRAY<STRUCT<at: TIMESTAMP, n: BIGINT>>>
"""
SCHEMA = PaymentSchema(tuple(Field(*column) for column in parse_columns(SCHEMA_FILE)))
RULES_FILE = """\
rules:
  - {name: every, when: 'true'}
  - {name: large, when: amount > 100}
  - {name: nobody, when: merchant IS NULL}
  - {name: recent, when: created_at >= '2024-01-01'}
  - {name: merchants, blocked: {column: merchant, ids: [casino, '12']}}
  - {name: installments, blocked: {column: installments, ids: [7, -1]}}
  - {name: accounts, blocked: {column: account, ids: [9223372036854775807, 42]}}
  - {name: branches, blocked: {column: branch, ids: [100]}}
  - {name: tries, blocked: {column: tries, ids: [-128]}}
"""

#: What a STRING may hold, as text; rules compare with these too.
WORDS = (
    *("", " ", "a", "casino", "Casino 24", "CASINO", "aaa", "aab", "100%", "a_b", "x-y.z", "  padded  ", "it's"),
    "back\\slash",
    *("caf\u00e9", "\u00c4\u00d6\u00dc stra\u00dfe", "line\nbreak", "\r\n", "a\u2028b", "a\u0085", "\U0001f44d thumbs"),
    *("\u0130\u0131\u017f\ufb01", "\u03a3\u03c3\u03c2", "\u0416\u0436", "\ud7ff", "\uffff", "\u0000", "12"),
    *("-1.5", "\t1\u00a0"),
)  # fmt: skip

#: Every field is given each of these.
_ANY = (
    *("null", "true", "false", "0", "-0", "1", "-1", "12.0", "-0.0", "1.5", "1e3", "1E+3", "1e-3", "-2.5e-7"),
    *("2", "3", "7", "42", "100", "-32768"),
    *("127", "128", "200", "255", "256", "-128", "-129", "32767", "32768", "-32769", "65535"),
    *("2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775808", "-9223372036854775809", "123456789012345678901234567890", "1e400", "-1e400", "1e39"),
    *("NaN", "-NaN", "nan", "Infinity", "-Infinity", "+Infinity", "INF", "+INF", "-INF", "inf", "undefined"),
    *('"NaN"', '"nan"', '"Infinity"', '"+Infinity"', '"-Infinity"', '"INF"', '"+INF"', '"-INF"', '"inf"'),
    *('""', '" "', '"1"', '" 1"', '"1 "', '"1.5"', '"-1e2"', '"0x10"', '"true"', '"TRUE"', '"null"', '"abc"'),
    *("{}", "[]", "[1]", '[1, "a", null]', '{"a": 1}', '{"a": {"b": [1.50, 1e7, NaN, "\\u00e9"]}}', "[[[]]]"),
    *("01", "+1", ".5", "5.", "1e", "0x10", "1_000", "1,5", "--1", "tru", "nul", "True", "None", "'1'", "'a\"b'", ""),
)

_NUMBERS = (
    *("0.5", "2.5", "-2.5", "127.9", "4503599627370496.5", "9.3e18", "-1e19", "1e308", "-1e308", "3.4e38", "-3.4e38"),
    *("0.1", "16777217", "9007199254740993", "1e-400", "1.7976931348623157e308", "0.30000000000000004"),
    *("4.9e-324", "5e-324", "1e-45", "1e23", "2e23", "123456789012345678.0"),
    *("3.4028235677973366e38", "3.4028235677973362e38"),
    *("100000000000000000000000", "3.4028236e38", "1e-46", "123456789.123456789", "1e22", "-0e0", "0e5"),
    *("1" * 400, "0." + "3" * 500, "1" * 999, "1" * 1000, "1" * 1002, "0." + "1" * 999, "0." + "1" * 1002, "1e99999"),
)

_DECIMALS = (
    *("1.005", "1.004999", "-1.005", "99999999.99", "99999999.994", "99999999.995", "100000000", "-99999999.995"),
    *("0.001", "-0.001", "0.005", "1e7", "1e8", "1e-20", "12345678.9", '"1,000.5"', '"1,0,0"', '","', '"1.005"'),
    *("1e999", "1e1000", "1e-999", "1e-1000", "9.99e-1000", "0e999", "0e1000", "0e-1000", "1e9999", "-1e-9999"),
    *("1e1000000", "1e-1000000", "0e-1000000", "1e999999999", "1e-999999999", "1e2147483647", "1e-2147483647"),
    *("1e99999999999", "1e-99999999999", "0." + "0" * 990 + "1", "0." + "0" * 996 + "99", "1" * 38 + ".5"),
    *('"1e999"', '"1e1000"', '"1e-999"', '"1e-1000"', '"1e0001"', '"1e-999999999"', '"0e999999999"', '"e1000"'),
    *('"' + "1" * 1100 + '"', '"' + "0" * 1100 + '"', '"' + "0" * 1101 + '"', '"0.' + "1" * 100_000 + '"'),
    *('"+5"', '"-.5"', '".5"', '"5."', '"1e2"', '"1E-1"', '"٣"', '"1d"', '"1f"', '"--1"', '"1.2.3"', '"1e999"'),
    *("0." + "1" * 400, "0." + "1" * 401, "1" * 400 + ".5", "1" * 401 + ".5", "0." + "1" * 496, "0." + "0" * 496 + "1"),
    *("1e2147483648", "1e-2147483648", "1.5e2147483648", "1.5e-2147483647", "0e2147483648", "1e02147483647"),
    r'"1\u0065999999999"',
)

_TIMES = (
    *("2024-03-01T12:30:45Z", "2024-03-01T12:30:45.123456Z", "2024-03-01T12:30:45.123456789Z", "2024-03-01"),
    *("2024-03-01 12:30:45", "2024-3-1 2:3:4", "2024", "2024-03", "2024-13", "2024-02-30", "2023-02-29", "2024-02-29"),
    *("2024-03-01T", "2024-03-01 ", " 2024-03-01", "2024-03-01T24:00:00", "2024-03-01T23:59:60Z", "2024-03-01T12"),
    *("2024-03-01T12:30", "2024-03-01T12:30Z", "2024-03-01T12:30:45.", "2024-03-01T12:30:45.Z", "2024-03-01t12:30:45"),
    *("2024-03-01T12:30:45+01:00", "2024-03-01T12:30:45-05:30", "2024-03-01T12:30:45+1", "2024-03-01T12:30:45+01"),
    *("2024-03-01T12:30:45+0100", "2024-03-01T12:30:45+1:00", "2024-03-01T12:30:45+18:00", "2024-03-01T12:30:45+18:01"),
    *("2024-03-01T12:30:45+01:0", "2024-03-01T12:30:45+01:00:30", "2024-03-01T12:30:45 Europe/Berlin"),
    *("2024-03-01T12:30:45 CET", "2024-03-01T12:30:45GMT", "2024-03-01T12:30:45 UTC", "2024-03-01T12:30:45 z"),
    *("2024-03-01 12:30:45 PM", "03/01/2024", "20240301", "20240301T123045Z", "2024-W09-5", "2024-061", "now", "epoch"),
    *("1709296245", "-1", "12:30", "T12:30:45", "0000-01-01", "0001-01-01", "1582-10-10T00:00:00Z"),
    *("1900-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
    *("10000-01-01", "+10000-01-01", "-0001-01-01", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+00:00:01"),
    *("0000-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999-00:00:01", "9999-12-31"),
    *("294247-01-10T04:00:54.775807Z", "99999999-01-01", "024-03-01", "2024--1", "2024-03-01-05"),
    "\uff12\uff10\uff12\uff14",
    *("Fri, 01 Mar 2024 12:30:45 GMT", "2024-03-01T12:30:45,123Z", "\\t2024-03-01\\n", "2024-03-01T12:30:45Z "),
    *("2024-02-29T23:59:59.999999", "1969-12-31T23:59:59.5", "1969-12-31", "2000-12-31T00:00:00"),
    *("9999-12-31T23:59:59.999999", "0001-01-01T00:00:00", "1582-10-10T10:00:00", "1582-10-10", "1900-01-01"),
    *("2024-03-01T99", "2024-03-01 x", "2024-03-01T12:3", "2024-03-01T12:30:45.12a", "2024-03-01T012:30:45", "1.5"),
)  # fmt: skip

_TEXTS = (
    *('"caf\\u00e9"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\ude00\\ud83d"', '"\\u0000"', '"a\\/b"', '"a\\"b"', '"\\\\"'),
    *('"\\x41"', '"\\u12"', '"a\\\'b"', '"\\b\\f\\n\\r\\t"', '"\U0001f600"', '"\u2028"', '"%_"', '"a\tb"', '"a\nb"'),
    *("'it is'", "'a\\'b'", "\"it's\"", "'\"'", '"' + "x" * 70_000 + '"', '"\u0130"', '"\ufeff"', '"\x7f"', '"\x00"'),
    *("1.50", "1.0E10", "1e7", "1e6", "0.001", "0.0001", "1E-5", "100.0", "-1e-7"),
    *('[1,2 , 3]', '{ "a" : [ ] , "b":null}', '["\\ud83d\\ude00", "\\u00e9", "/"]', "['a', 'b\"c']"),
    "[-0, -0.0, 1e400]",
    *("[+INF, -INF, NaN, Infinity]", '{"a":1,"a":2}', "[1,]", "[,1]", "[1 2]", '{"a"}', "{'a':1}", "{a:1}", '{"a":1,}'),
    "[" * 998 + "]" * 998, "[" * 999 + "]" * 999, "[" * 1000 + "]" * 1000, "[" * 5000, '{"a":' * 600 + "1" + "}" * 600,
)  # fmt: skip

_WHOLE = (
    *(b"", b" ", b"\t\r\n ", b"\x00", b"{", b"}", b"{}", b" {} ", b"[]", b"[{}]", b"null", b"true", b"1", b'"text"'),
    *(b"\xef\xbb\xbf{}", b"\xff\xfe\x00", b"\xc3", b"not json", b"{{}}", b"{]", b"//x\n{}", b"/* x */{}", b"# x\n{}"),
    b'[{"payment_id": "p"}]', b'{"payment_id": "p"}', b' \n{"payment_id": "p"}\n ', b'\x00{"payment_id": "p"}',
    b'{"payment_id": "p"} trailing', b'{"payment_id": "p"}}', b'{"payment_id": "p"}{"payment_id": 2}',
    b'{"payment_id": "p"',
    b'{"payment_id": "p"}\x00', b'{"payment_id": "p"} \xff', b'{"payment_id": "p"},', b'{"payment_id": "p",}',
    b'{"payment_id": "p"}\n{"payment_id": "p", "amount": 7000}', b'{"payment_id": "p"}]{"amount": 7000', b'{}[', b"{}}",
    b'{"payment_id": "p"} // x', b'{"payment_id": "p"}{', b'{"payment_id": "p", "payment_id": "p"} x', b"[1] x",
    b"{'payment_id': 'p', \"payment_id\": 'q'}", b'{"payment_id": "p", "x": {"a": 1, "b": [{"c": 1, "c": 1}]}}',
    b'{"payment_id": "p", "x": [{"a": 1}, {"a": {"a": 1}}], "a": 1}', b'{"payment_id": "p", "x": {"": 1, "": 2}}',
    b'{"payment_id": "p", "\\u0078": 1, "x": 1}', b'{"payment_id": "p", "\xff": 1, "\xfe": 1}', b'{"a":1,"a":2',
    b'{"payment_id": "p", "unknown": [1e99999999999]}', b'{"payment_id": "p", "unknown": "1e99999999999"}',
    b'{"payment_id": "p", "unknown": 1e2147483648}', b'{"payment_id": "p", "unknown": 1.5e2147483648}',
    b'{"payment_id": "p", "unknown": 1e2147483647}', b'{"payment_id": "p", "unknown": 1.5e-2147483647}',
    b'{"payment_id": "p", "amount": 1e99999999999}', b'{"payment_id": "p", "amount": "x", "fee": 1e1000000}',
    b"{'payment_id': 'p', 'x': '\"', 'unknown': 1e99999999999}",
    b"{'payment_id': 'p'}", b'{payment_id: "p"}', b'{"payment_id" "p"}', b'{"payment_id": p}', b'{"payment_id"; "p"}',
    b'{"payment_id": null}', b'{"Payment_Id": "p"}', b'{"payment_id ": "p"}', b'{"payment\\u005fid": "p"}', b'{"": 1}',
    b'{"payment_id": "p", "payment_id": null}', b'{"payment_id": null, "payment_id": "p"}',
    b'{"payment_id": "p", "amount": 1, "amount": 7000}', b'{"payment_id": "p", "amount": "x", "amount": 1}',
    b'{"payment_id": "p", "amount": 1, "amount": "x"}', b'{"payment_id": "p", "amount": 1, "amount": null}',
    b'{"payment_id": "p", "unknown": {"x": [1, 2, {"y": null}]}}', b'{"payment_id": "p", "unknown": nonsense}',
    b'{"payment_id": "p", "unknown": 01}', b'{"payment_id": "p", "unknown": "\\q"}', b'{"payment_id": "p", "x": [1, 2}',
    b'{"payment_id": "p", "unknown": 1' + b"0" * 2000 + b"}", b'{"payment_id": "p", "unknown": 1e99999999999}',
    b'{"payment_id": "caf\xe9"}', b'{"payment_id": "\xf0\x9f\x98"}', b'{"payment_id": "\xed\xa0\xbd\xed\xb8\x80"}',
    b'{"payment_id": "\xc0\x80"}', b'{"payment_id": "\xf5\x80\x80\x80"}', b'{"payment_id": "\xe2\x82"}',
    b'{"pay\xe9": 1}',
    b'{"payment_id": "\xed\xa0"}', b'{"payment_id": "\x80\x80"}', b'{"payment_id": "\xe2\x28\xa1"}',
    b'{"payment_id": "\xff"}',
    b'{"' + b"n" * 50_000 + b'": 1, "payment_id": "p"}', b'{"' + b"n" * 50_001 + b'": 1, "payment_id": "p"}',
    b'{"payment_id": "' + b"x" * 1_000_000 + b'"}', b'{"payment_id": {"a": 1}, "amount": 6000}',
    b'{"payment_id": [1, 2]}',
    b'{"payment_id": 12, "amount": 6000}', b'{"payment_id": true}', b'{"payment_id": 1.10}', b'{"payment_id": ""}',
    '{"payment_id": "p"}'.encode("utf-16-le"), '{"payment_id": "p"}'.encode("utf-16"), b'{"payment_id":\xc2\xa0"p"}',
    b'{"payment_id": "p", "amount": 1 /* x */}', b'{"payment_id": "p"; "amount": 1}', b'{,"payment_id": "p"}',
    b'{"payment_id": "p",, "amount": 1}', b'{"payment_id": "p" "amount": 1}', b'{"payment_id": "p", "amount": }',
)  # fmt: skip

_NESTED = (
    *("[]", '["a"]', '["a", "\\ud800"]', '["a", 1]', '["a", null]', "[1, 2]", "[[1]]", '[{"n": 1}]', "[true]"),
    *("{}", '{"a": 1}', '{"a": null}', '{"a": 2147483648}', '{"a": "1"}', '{"\\ud800": 1}', '{"": 1}', '{"a": {}}'),
    *('{"total": 1.25}', '{"total": "1.25", "items": []}', '{"total": 99999}', '{"total": 1e4, "x": [1]}'),
    *('{"items": [{"n": 1, "at": "2024-03-01"}]}', '{"items": [{"n": 1.0}]}', '{"items": [{}, {"at": null}]}'),
    *('{"items": [{"at": "2024-02-30"}]}', '{"items": [null]}', '{"items": {}}', '{"items": null, "total": null}'),
    *('{"total": 1, "total": 1}', '{"total": 1e99999999999}', '{"items": [{"at": 1700000000}]}'),
    *('["casino", "", "casino"]', '["x", "aab", "caf\u00e9"]', '{"a": 1, "b": 2}', '{"a": -5}', '{"A": 2147483647}'),
    *('{"total": 0.125, "items": [{}, {"at": "9999-12-31T23:59:59.999999Z", "n": 7}]}', '{"total": "-0.05"}'),
    '{"items": [{"n": -9223372036854775808}, {"at": "0001-01-01T00:00:00Z"}, {}]}',
    *('{"items": ' + "[" * depth + "]" * depth + "}" for depth in (1, 2, 97, 98, 99)),
)

#: What chance puts between the pieces of two texts.
_BETWEEN = (
    *("", "", "", *"\"'\\-+.,:[]{} 01eTZ\x00\n\u00e9\u2028\ud800", "\\u", "\\u00", "\\ud83d", "E-"),
    *("9" * 40, "9" * 1000, "null", "true", "NaN", " UTC"),
)
#: Texts that are made so of those of a field.
_MADE = 100
#: Bytes of the largest payments that the default lets in, about.
_LARGE = 2**16


def write_files(directory: Path) -> dict[str, Path]:
    """The schema and its rules as files, by the settings that name them."""
    files = {"payment_schema": directory / "payment.ddl", "rules": directory / "rules.yml"}
    files["payment_schema"].write_text(SCHEMA_FILE)
    files["rules"].write_text(RULES_FILE)
    return files


def picked_values(schema: PaymentSchema) -> list[bytes | None]:
    """A record for each text, values that are no records, and large payments."""
    alone = (_one_field(field, text) for field in schema.fields for text in _field_texts(field))
    return [None, *_WHOLE, *alone, *large_payments(schema)]


def large_payments(schema: PaymentSchema) -> list[bytes]:
    """Payments about as large as the default lets in, all of it in fields that rules look through."""
    names = [field.name for field in schema.fields if field.type == "STRING"]
    values = []
    for fill in ("a", "x1", " ", "\u0390", "ab\n"):
        most = _LARGE // len(fill.encode()) // len(names) - 100
        values.append(json.dumps(dict.fromkeys(names, fill * most), ensure_ascii=False).encode())
    return values


def drawn_values(schema: PaymentSchema, count: int, choose: random.Random) -> list[bytes]:
    """Records of many such texts, and of pieces of them. The schema takes every second or third."""
    reader = PaymentReader(schema)
    picked = {field: _field_texts(field) for field in schema.fields}
    all_picked = [text for some in picked.values() for text in some]
    texts = {field: [*some, *_spliced(choose, some, all_picked)] for field, some in picked.items()}
    fitting = {
        field: [text for text in some if reader.read(_one_field(field, text)).reason is None]
        for field, some in texts.items()
    }
    whole = [*_WHOLE, *(choose.randbytes(choose.randint(1, 60)) for _ in range(_MADE))]
    whole += map(_encode, _spliced(choose, all_picked, all_picked))
    values = []
    for _ in range(count):
        value = choose.choice(whole) if choose.random() < 0.1 else _object(choose, fitting, texts)
        values.append(_damaged(choose, value) if choose.random() < 0.1 else value)
    return values


def _field_texts(field: Field) -> list[str]:
    """What may stand as the value of a field of this type, in JSON or almost."""
    kind, texts = field.kind, list(_ANY)
    if kind.name in ("DOUBLE", "FLOAT", "INT", "BIGINT", "STRING", "DECIMAL"):
        texts += _NUMBERS
    if kind.name == "DECIMAL":
        texts += [*_DECIMALS, *_limits(kind.precision, kind.scale)]
    if kind.name in ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE"):
        texts += [f'"{text}"' for text in _TIMES]
    if kind.name == "STRING":
        texts += [*_TEXTS, *(json.dumps(word, ensure_ascii=False) for word in WORDS)]
    return [*texts, *_NESTED] if kind.parts else texts


def _limits(precision: int, scale: int) -> list[str]:
    """Decimals: zero, the least, the largest, and others."""
    units = (0, 1, -1, 5, 10**precision - 1, 1 - 10**precision, 10 ** (precision // 2))
    return [f"{Decimal(unit).scaleb(-scale, Context(prec=60)):f}" for unit in units]


def _one_field(field: Field, text: str) -> bytes:
    prefix = "" if field.name == "payment_id" else '"payment_id": "p", '
    return _encode(f'{{{prefix}"{field.name}": {text}}}')


def _encode(text: str) -> bytes:
    """Lone surrogates included."""
    return text.encode("utf-8", "surrogatepass")


def _spliced(choose: random.Random, texts: Sequence[str], others: Sequence[str]) -> list[str]:
    """The beginning of a text, and the end of it or of another one."""
    made = []
    for _ in range(_MADE):
        one = choose.choice(texts)
        other = one if choose.random() < 0.6 else choose.choice(others)
        at = choose.randint(0, len(one))
        end = at + choose.randint(-2, 3) if other is one else choose.randint(0, len(other))
        made.append(one[:at] + choose.choice(_BETWEEN) + other[max(end, 0) :])
    return made


def _object(choose: random.Random, fitting: dict[Field, list[str]], texts: dict[Field, list[str]]) -> bytes:
    """An object with fields of the schema: some odd, some missing, some twice, some that the schema does not have."""
    members = [
        (f'"{field.name}"', choose.choice(some))
        for field, some in fitting.items()
        if choose.random() < (0.98 if field.required else 0.8)
    ]
    for _ in range(choose.choice((0, 0, 0, 1, 1, 2))):
        field = choose.choice(list(texts))
        text = choose.choice(texts[field])
        name = choose.choice((text, "'amount'", '"Amount"', '""')) if choose.random() < 0.1 else f'"{field.name}"'
        if choose.random() < 0.8:
            members = [(other, value) for other, value in members if other != name]
        members.append((name, text))
    choose.shuffle(members)
    space = choose.choice(("", "", " ", "\n\t", "\r"))
    return _encode(f"{space}{{{','.join(f'{space}{name}:{space}{text}' for name, text in members)}}}{space}")


def _damaged(choose: random.Random, value: bytes) -> bytes:
    """Some bytes lost, changed or added, at one place."""
    at = choose.randint(0, len(value))
    return value[:at] + choose.randbytes(choose.randint(0, 3)) + value[at + choose.randint(0, 6) :]
