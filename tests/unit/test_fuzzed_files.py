"""Whatever stands in a file or in the environment, it is taken or refused in words: no other error comes out."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fraud_filter.checkpoint.contents import Contents, Log
from fraud_filter.checkpoint.entries import (
    BrokenEntryError,
    check_commit_entry,
    parse_initial_offset,
    parse_offset_entry,
)
from fraud_filter.checkpoint.inspection import inspect_contents
from fraud_filter.compose import env_file
from fraud_filter.config import Settings, env_name, load
from fraud_filter.errors import UsageError
from fraud_filter.kafka.topics import load_topics
from fraud_filter.rules.ruleset import RuleSet, load_rules
from fraud_filter.schema import Field, PaymentSchema, load_schema

SCHEMA = PaymentSchema((Field("payment_id", "STRING", True), Field("amount", "DOUBLE", False)))
_shared = settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])

_texts = st.text(st.characters(exclude_categories=["Cs"]))
_scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), _texts, st.binary(max_size=8), st.dates(), st.datetimes()
)
_trees = st.recursive(
    _scalars, lambda some: st.lists(some, max_size=4) | st.dictionaries(_scalars, some, max_size=4), max_leaves=12
)
_keys = st.sampled_from(["name", "description", "when", "blocked", "column", "ids", "file", "rules"])
_rules = st.dictionaries(_keys, _trees | st.dictionaries(_keys, _trees, max_size=4), max_size=5)
_rules_files = st.fixed_dictionaries({"rules": st.lists(_rules, max_size=4) | _trees})
_yaml_words = st.sampled_from(
    ["rules", ":", "- ", "\n", "  ", "name", "when", "{", "}", "[", "]", "&a ", "*a", "!!", "|", ">", "? ", "<<", "---",
     "!!python/object:os.system", "!!binary", "!!timestamp", "!!int", "2024-99-99", "0x", "1e999", '"', "'", "%", "\t",
     "#", ",", "!!set", "!!omap", "!!float", "!!null", "!!bool", "0b", "1:99:99", "=", "...", "\x85", "\\u", "@"]
)  # fmt: skip
_yaml_texts = st.lists(_yaml_words | _texts, max_size=14).map("".join)
_ddl_words = st.sampled_from(
    ["amount", "DOUBLE", "STRING", "NOT", "NULL", ",", "(", ")", "<", ">", ":", "DECIMAL", "10", "STRUCT", "ARRAY",
     "MAP", "`", "'", '"', "--", "/*", "*/", ";", "COMMENT", "DEFAULT", "GENERATED", "AS", "PRIMARY", "KEY", "SELECT",
     ".", "=", "rules", "_x", "INTERVAL", "TIMESTAMP", "UNIQUE", "CHECK", "CONSTRAINT", "PARTITIONED", "BY", "LIKE",
     "@", "\n"]
)  # fmt: skip
_ddl_texts = st.lists(_ddl_words | _texts, max_size=14).map(" ".join)


def _dump(tree: Any) -> str:
    return str(yaml.safe_dump(tree, allow_unicode=True))


def _taken_or_refused(load_file: Callable[[Path], Any], path: Path, content: bytes) -> Any:
    """What the file gives, or None when it is refused."""
    path.write_bytes(content)
    refusal = ""
    try:
        return load_file(path)
    except UsageError as error:
        refusal = str(error)
    assert path.name in refusal
    return None


def _load_rules(path: Path) -> RuleSet:
    return load_rules(path, SCHEMA)


@_shared
@given(content=st.binary() | _texts.map(str.encode) | _yaml_texts.map(str.encode))
@example(content=b"rules: " + b"[" * 5000)
@example(content=b"rules: " + b"{a: " * 5000)
@example(content=b"- " * 5000)
@example(content=b"rules: &a [*a]")
@example(content=b"? [a]\n: b")
@example(content=b"? {a: b}\n: c")
@example(content=b"rules: 2024-99-99")
@example(content=b"rules: !!int x")
@example(content=b"rules: !!binary \xc3\xa9")
@example(content=b"? rules\n: [{name: a, when: b}]")
@example(content=b"<<: {rules: [{name: a, when: b}]}")
@example(content=b"rules: [{<<: [{name: a}], when: b}]")
@example(content=b"rules: [{name: a, blocked: {column: payment_id, file: '\\0'}}]")
@example(content=b"rules: [{name: a, blocked: {column: payment_id, file: ''}}]")
@example(content=b"rules: [{name: a, blocked: {column: payment_id, file: " + b"x" * 5000 + b"}}]")
@example(content=b"rules: " + b"1" * 5000)
@example(content=b"? !!set {a}\n: b")
@example(content=b"rules: !!omap [a]")
@example(content=b"rules: !!timestamp x")
@example(content=b"rules: !!float x")
@example(content=b"rules: !!bool x")
@example(content=b"rules: .inf")
def test_a_rules_file_is_taken_or_refused(tmp_path: Path, content: bytes) -> None:
    _taken_or_refused(_load_rules, tmp_path / "rules.yml", content)


@_shared
@given(tree=_rules_files | _trees)
def test_a_rules_file_of_any_structure_is_taken_or_refused(tmp_path: Path, tree: Any) -> None:
    found = _taken_or_refused(_load_rules, tmp_path / "rules.yml", _dump(tree).encode())
    assert found is None or all((rule.when is None) != (rule.column is None) for rule in found.rules)


@_shared
@given(content=st.binary() | _texts.map(str.encode) | _ddl_texts.map(str.encode))
@example(content=b"a STRUCT<" * 2000)
@example(content=b"a " + b"ARRAY<" * 2000 + b"INT" + b">" * 2000)
@example(content=b"a INT); DROP TABLE x; --")
@example(content=b"a INT) AS SELECT (1")
@example(content=b"a INT COMMENT 'x' NOT NULL, b")
@example(content=b"'")
@example(content=b"/*")
@example(content=b"\x00 INT")
def test_a_schema_file_is_taken_or_refused(tmp_path: Path, content: bytes) -> None:
    found = _taken_or_refused(load_schema, tmp_path / "payment.ddl", content)
    assert found is None or (found.fields and found.ddl)


@_shared
@given(tree=_trees | st.fixed_dictionaries({"topics": _trees}))
def test_a_topics_file_is_taken_or_refused(tmp_path: Path, tree: Any) -> None:
    _taken_or_refused(
        lambda path: load_topics(load({"topics_file": path})), tmp_path / "topics.yml", _dump(tree).encode()
    )


_env_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
_env_values = st.one_of(
    _env_texts,
    st.integers().map(str),
    st.floats().map(str),
    st.just("1" * 5000),
    st.sampled_from(["[" * 100_000, '{"a":' * 100_000, '{"a": 1}', '{"a": "b"}', "[]", "null", "true", "9" * 25]),
    st.from_regex(r"[0-9]{1,30} (millisecond|second|minute|hour)s?", fullmatch=True),
    _trees.filter(lambda tree: isinstance(tree, (str, int, float))).map(json.dumps),
)


@_shared
@given(name=st.sampled_from(sorted(Settings.model_fields)), value=_env_values)
def test_any_value_of_a_setting_is_taken_or_refused_by_its_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    with monkeypatch.context() as environment:
        try:
            environment.setenv(env_name(name), value)
        except ValueError:  # the system takes no such value
            return
        refusal = f"setting {name} "
        try:
            load()
        except UsageError as error:
            refusal = str(error)
        assert f"setting {name} " in refusal


@_shared
@given(content=st.binary() | _env_texts.map(str.encode) | _yaml_texts.map(lambda text: f"FRAUD_MODE={text}".encode()))
@example(content=b"FRAUD_MODE=\xff")
@example(content=b"FRAUD_MODE")
@example(content=b"FRAUD_SPARK_CONF='")
@example(content=b"\xef\xbb\xbfFRAUD_MODE=x")
def test_an_env_file_is_taken_or_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "some.env"
    file.write_bytes(content)
    with contextlib.suppress(UsageError):
        load(env_file=file)
    with contextlib.suppress(UsageError):
        assert all(isinstance(value, str) for value in env_file.read(file).values())


_ends = st.dictionaries(st.integers().map(str) | _texts, st.integers() | st.none() | _texts, max_size=3)
_offsets = st.dictionaries(_texts, _ends, max_size=3)
_json = st.recursive(
    st.none() | st.integers() | _texts, lambda some: st.lists(some) | st.dictionaries(_texts, some), max_leaves=8
)
_lines = st.one_of(
    st.sampled_from(["v1", "v2", "v0", "", "-", "{}", "null", "[]", "1", "NaN", '{"batchWatermarkMs":0}']),
    st.sampled_from(["v" + "9" * 5000, "[" * 5000, '{"a":' * 100_000, '{"t":{"0":' + "9" * 5000 + "}}"]),
    st.sampled_from(['{"t":{"0":1}}', '{"t":{"x":1}}', '{"t":{"0":null}}']),
    _texts,
    _offsets.map(json.dumps),
    _json.map(json.dumps),
)
_entries = st.one_of(
    st.binary(),
    st.lists(_lines, max_size=5).map(lambda lines: "\n".join(lines).encode()),
    st.lists(_lines, max_size=4).map(lambda lines: "\n".join(["v1", *lines]).encode()),
)


@pytest.mark.parametrize("parse", [partial(parse_offset_entry, 3), check_commit_entry, parse_initial_offset])
@_shared
@given(content=_entries)
def test_an_entry_of_a_checkpoint_is_read_or_broken(parse: Callable[[bytes], object], content: bytes) -> None:
    with contextlib.suppress(BrokenEntryError):
        parse(content)


@_shared
@given(entry=_entries, commit=_entries)
@example(entry=b'v1\n{}\n{"t":{"x":1}}', commit=b"v1\n{}")
@example(entry=b'v1\n{}\n{"t":{"0":null}}', commit=b"v1\n{}")
@example(entry=b'v1\n{"batchTimestampMs":1' + b"0" * 30 + b'}\n{"t":{"0":1}}', commit=b"v1\n{}")
def test_any_checkpoint_can_be_inspected(entry: bytes, commit: bytes) -> None:
    def read_commit(_: int) -> bytes:
        check_commit_entry(commit)
        return commit

    logs = Log([3], lambda number: parse_offset_entry(number, entry)), Log([3], read_commit)
    json.dumps(inspect_contents("/somewhere", Contents(*logs), 0).to_dict())
