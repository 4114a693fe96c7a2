"""What the language of rules takes and refuses; `tests/embedded/test_fuzzed_rules.py` compares it with Spark."""

from __future__ import annotations

import re

import pytest

from fraud_filter.home import HOME
from fraud_filter.rules.language import LanguageError, read_predicate
from fraud_filter.rules.patterns import UnplacedError, read_like, read_regex
from fraud_filter.rules.words import CAPITALS, EXISTS, FUNCTIONS, REFUSED
from fraud_filter.schema import Field, PaymentSchema, load_schema

SCHEMA = load_schema(HOME / "app/payment.ddl")
MORE = PaymentSchema(
    (
        *(*SCHEMA.fields, Field("fee", "DECIMAL(38, 2)", False), Field("is_bad", "BOOLEAN", True)),
        *(Field("tags", "ARRAY<STRING>", False), Field("counts", "MAP<STRING, INT>", False)),
        Field("items", "ARRAY<STRUCT<kind: STRING, price: FLOAT>>", False),
    )
)
#: Ways to write what `tests/embedded/drawn_rules.py` writes in one way.
TAKEN = (
    *("AMOUNT > 1 AND `Merchant` = 'x'", "merchant = 'it''s'", r"merchant = 'it\'s'", "merchant = '(['"),
    *('merchant = "it\'s"', "`amount` > (1)", "not (amount <=> 1)", "amount > 1D", "-amount < 0"),
    *("created_at > timestamp'2026-01-01 00:00:00'", "created_at > '2026-01-31T12:00:00.5+01:00'"),
    "(" * 101 + "true" + ")" * 101,
)
#: Where a word can stand, and the words that are refused elsewhere and taken there.
PLACES: tuple[tuple[str, set[str]], ...] = (
    ("{}(amount) > 1", set()),
    ("amount > {}", set()),
    ("merchant LIKE {} ('a')", set()),
    ("amount {} 1", {"like", "rlike"}),
    ("amount IS {} FROM 1", {"null"}),
)
#: What else is refused, and words that tell where and why, or what to write.
REFUSALS = (
    ("\n", "is empty"),
    ("merchant = 'x", "line 1, column 12 of \"merchant = 'x\": the quotation that begins with ' has no end"),
    ("merchant = 'it's'", "line 1, column 16 of"),
    ('amount > 1 AND\n merchant = "x', "line 2, column 13 of"),
    ("(amount > 1", "something is missing at the end"),
    ("amount > 1)", "line 1, column 11 of 'amount > 1)': ')' may not stand here"),
    ("amount >", "line 1, column 9 of 'amount >': something is missing"),
    ("amnt > 1",
    "line 1, column 1 of 'amnt > 1': unknown column 'amnt' (did you mean 'amount'?); there are payment_id"),
    ("amount", "'amount' is of type double; a predicate is true or false"),
    ("amount > 1 OR amount", "'OR' takes a condition, and this is a number"),
    ("amount > 1" + " OR amount > 1" * 1000, "more than 10,000 characters"),
    ("amount > " + "1 + " * 200 + "1", "more than 100 levels"),
    ("merchant = '" + "x" * 1001 + "'", "at most 1000 bytes"),
    ("merchant = '\\d'", "a text may not hold \\d; write \\\\d"),
    # words
    ("1 < sum(amount)",
    "line 1, column 5 of '1 < sum(amount)': 'sum' is no word of a rule: it needs several records; use a feature"),
    ("created_at > timestamp 'now'", "'now' is no TIMESTAMP; write the time out, as in '2026-01-31 12:00:00'"),
    ("nobody(amount) > 1", "it is none of the words of a rule; docs/rules.md lists them"),
    ("lenght(merchant) > 1", "(did you mean 'length'?)"),
    ("amount > ${env:LEVEL}", "'$' may not stand here"),
    # types
    ("merchant = 12", "this mixes a number and a text; write a CAST, so that all are of one kind"),
    ("created_at IN ('2024-01-01')", "this mixes a text and a time"),
    ("left(merchant, 2147483648) = 'a'", "'left' takes a whole number that stands in the rule"),
    ("length(amount) = 2", "'length' takes a text, and this is a number"),
    ("CAST(merchant AS BIGINT) = 1",
    "a rule can't make BIGINT of a text; give the field the type that you need, in payment.ddl"),
    ("CAST(amount AS FLOAT) = 1", "'FLOAT' is no word of a rule: a CAST makes BIGINT, DOUBLE, DECIMAL, STRING"),
    ("CAST(created_at AS DATE) = '2024-01-01'", "the day of a time is to_date(…)"),
    ("fee + fee > 1", "this needs a DECIMAL(39, 2), and a DECIMAL has at most 38 digits; CAST an operand"),
    ("floor(amount, 2) = 1", "'floor' takes fraction, and here are 2 operands"),
    ("is_bad IS TRUE", "'TRUE' may not stand here"),
    ("contains(merchant, country)", "'contains' takes a text that stands in the rule"),
    ("replace(merchant, 'a', 'aa') = ''", "must not be longer than the one before"),
    ("substring(merchant) = ''", "'substring' takes STRING count count?, and here are 1 operands"),
    # nested values
    ("items.kind = 'a'", "there is no 'kind' in `items`: it is of type ARRAY<STRUCT<kind: STRING, price: FLOAT>>"),
    ("items[0].kid = 'a'", "there is no 'kid' in `items`[0] (did you mean 'kind'?): kind, price"),
    ("counts[0] = 1", "`counts` is MAP<STRING, INT>; an ARRAY takes [0], a MAP ['name']"),
    ("exists(tags, x -> x = merchant)", "'merchant' would be read again for each element; compare elements with"),
    ("size(fee) = -1", "'size' takes an array, and this is a number"),
    ("exists(items, x -> x > 1)", "a rule can't compare values of type STRUCT"),
    ("tags = tags", "a rule can't compare values of type ARRAY"),
    ("tags[card_id] = 'x'", "'card_id' may not stand here"),
    # steps
    ("merchant LIKE '%a%b%'", "has several % before its end; write contains"),
    ("merchant RLIKE '.*a.*b'", "elsewhere than at its end, or once behind ^"),
    ("merchant RLIKE country", "a text that stands in the rule must follow RLIKE"),
    (" OR ".join(["lower(merchant) = 'a'"] * 4), "times at each character of a record; 50 are allowed: take left(…"),
)  # fmt: skip


@pytest.mark.parametrize("when", TAKEN)
def test_a_sentence_of_the_language(when: str) -> None:
    assert read_predicate(when, MORE).type == "BOOLEAN"


@pytest.mark.parametrize(("place", "taken"), PLACES)
def test_a_word_of_spark_is_refused_with_its_reason_wherever_it_stands(place: str, taken: set[str]) -> None:
    """The reasons are in tests/data/refused_functions.md."""
    for word in REFUSED.keys() - taken:
        with pytest.raises(LanguageError, match=re.escape(REFUSED[word])):
            read_predicate(place.format(word), MORE)


@pytest.mark.parametrize(("when", "said"), REFUSALS)
def test_what_is_no_sentence_is_refused_with_its_place_and_what_to_write(when: str, said: str) -> None:
    with pytest.raises(LanguageError) as refused:
        read_predicate(when, MORE)
    assert said in str(refused.value)


def test_brackets_and_conversions_stand_wherever_something_could_be_understood_in_two_ways() -> None:
    schema = PaymentSchema((Field("a", "INT", True), Field("f", "FLOAT", True), Field("s", "STRING", True)))
    assert read_predicate("a + 1 * 2 > 0.5 OR NOT f = 1", schema).spark == (
        "((CAST((CAST(`a` AS BIGINT) + ((1L) * (2L))) AS DECIMAL(20, 1)) > CAST('0.5' AS DECIMAL(20, 1))) "
        "OR (NOT (CAST(`f` AS DOUBLE) = (1.0D))))"
    )
    assert read_predicate(r"s LIKE 'it''s\n%'", schema).spark == r"(`s` LIKE 'it\u0027s\u000a%')"


@pytest.mark.parametrize(
    ("pattern", "text", "looks"),
    [
        ("^x", r"\Ax", 1), ("a.b$", r"a[^\n]b(?!(?s:.))", 6), ("(casino|bet)", "(?:casino|bet)", 9), ("a+", "a+", 4),
        ("[a-z.]{2}", r"[a-z\.]{2}", 8), (r"\d{1,3}x", "[0-9]{1,3}x", 15), ("^[A-Z]+[0-9]", r"\A[A-Z]+[0-9]", 8),
        (r"[\w-]", r"[a-zA-Z0-9_\-]", 4), (r"\$\(", r"\$\(", 2), ("", "", 1), ("a|b", "a|b", 2),
    ],
)  # fmt: skip
def test_a_pattern_is_written_anew_with_its_looks_at_each_character(pattern: str, text: str, looks: int) -> None:
    assert read_regex(pattern) == (text, looks)


@pytest.mark.parametrize(
    "pattern",
    [
        "a++", "a+?", "(a|b)+", "(a|b){2}", "a{101}", "a+b", "^a+b+c", "(?i)a", "(?=a)", r"\bA", r"\p{L}",
        "[[a]]", "[a&&b]", "[z-a]",
        "(a", "a)", "[a", "*a", "a^", "a$b", "(^a)", "a{2,1}", "{", "\\", "a|*", "^*a", "a$+", r"(a)\1", "[]",
        "a{2,}", r"a\|^b", r"\n",
    ],
)  # fmt: skip
def test_a_pattern_of_another_kind_is_refused(pattern: str) -> None:
    with pytest.raises(UnplacedError):
        read_regex(pattern)


def test_a_pattern_of_like() -> None:
    assert read_like("a%") == "a.*"
    assert read_like("\\%_\\\\") == "%.\\\\"
    for wrong in ("%a%b%", "a\\", "a\\b"):
        with pytest.raises(UnplacedError):
            read_like(wrong)


def test_each_word_has_one_verdict() -> None:
    assert not {EXISTS, *FUNCTIONS} & REFUSED.keys()


def test_letters_have_one_other_case() -> None:
    assert len(CAPITALS) == len(set(CAPITALS)) == len(set(CAPITALS.lower())) == 200
    assert not set(CAPITALS) & set(CAPITALS.lower())
