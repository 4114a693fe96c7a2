"""A query of the user's: what is found, and what is refused before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from fraud_filter.config import load, output_topics
from fraud_filter.errors import UsageError
from fraud_filter.query.user_query import load_user_query

GOOD = "def transform(records):\n    return records\n"


def test_a_function_is_found_by_file_and_by_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "found_by_both.py"
    file.write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    for reference in ("found_by_both:transform", "found_by_both.py:transform", f"{file}:transform"):
        query = load_user_query(load({"query": reference}))
        assert query.function(5) == 5  # type: ignore[arg-type]
        assert (query.file, query.described) == (str(file), {"function": reference})
    assert query.expect is None
    before = query.version
    file.write_text(GOOD + "def expect(record):\n    return record\n")
    changed = load_user_query(load({"query": reference}))
    assert changed.version != before
    assert changed.expect is not None
    assert changed.expect(5) == 5


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("own.py", GOOD, "names no function; give my_package"),
        ("own.py:other", GOOD, "has no function other; name one of it"),
        ("none.py:transform", GOOD, r"is not there: .*none\.py; give my_package"),
        ("no.such.module:transform", GOOD, "can't be imported: No module named 'no'; install it"),
        ("own.py:transform", "import no_such_module\n", "can't be imported: No module named 'no_such_module'"),
        ("own.py:transform", "\n1 / 0\n", r"raises ZeroDivisionError in .*own\.py, line 2: division by zero"),
        ("own.py:transform", "from pyspark.sql.functions import lit\n\nlit(1)\n", "line 3: .*within yours"),
        ("own.py:transform", "\n\ndef (:\n", r"raises SyntaxError in .*own\.py, line 3: "),
    ],
)
def test_what_can_not_be_imported_is_refused_by_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, told: str
) -> None:
    (tmp_path / "own.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=told) as refused:
        load_user_query(load({"query": name}))
    assert str(refused.value).startswith(f"setting query (--query, FRAUD_QUERY): {name!r} ")
    assert "\n" not in str(refused.value)


def test_other_sources_are_for_the_filter(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'rate' is for the fraud filter; a query of yours reads kafka"):
        load_user_query(load({"query": f"{tmp_path}/own.py:transform", "source": "rate"}))


def test_settings_of_the_filter_alone_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"has no rules, emit; take away the setting rules \(--rules, .*setting emit"):
        load({"query": "own.py:transform", "emit": "all", "rules": "mine.yml"})
    assert load({"query": "own.py:transform", "emit": "flagged", "velocity_partitions": 3}).query


def test_its_rows_go_to_one_topic() -> None:
    assert output_topics(load({"query": "own.py:transform"})) == ["flagged_topic"]
