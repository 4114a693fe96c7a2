"""The folder `conf` beside `.env`: what tells that a file of it has changed."""

from __future__ import annotations

import pytest

from fraud_filter.compose import conf, env_file
from fraud_filter.compose.stack import Stack
from fraud_filter.config import load
from fraud_filter.errors import UsageError


def version(stack: Stack) -> str:
    conf.prepare(stack)
    return env_file.read(stack.env).get("CONF_VERSION", "")


def test_an_empty_folder_changes_no_line(stack: Stack) -> None:
    before = stack.env.read_text()
    assert version(stack) == ""
    assert stack.env.read_text() == before


def test_each_change_of_a_file_changes_the_version(stack: Stack) -> None:
    seen = []
    for name, text in (("rules.yml", "a"), ("rules.yml", "b"), ("lists/blocked.txt", "b"), ("query.py", "b")):
        file = stack.conf / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        seen.append(version(stack))
        assert version(stack) == seen[-1]
    assert len({"", *seen}) == 5


def test_what_python_makes_of_a_query_on_this_machine_changes_nothing(stack: Stack) -> None:
    (stack.conf / "query.py").write_text("a")
    before = version(stack)
    (stack.conf / "__pycache__").mkdir()
    (stack.conf / "__pycache__/query.cpython-311.pyc").write_text("a")
    assert version(stack) == before


def test_a_query_must_lie_where_the_containers_see_it(stack: Stack) -> None:
    settings = load(env_file=stack.env)
    for given, told in (
        ("/mine/query.py:transform", "put the file there, and give conf/query.py"),
        ("conf/query.py:transform", "there is no file"),
    ):
        stack.values["FRAUD_QUERY"] = given
        with pytest.raises(UsageError, match=told):
            conf.check(stack, settings)
    stack.conf.mkdir(exist_ok=True)
    (stack.conf / "query.py").write_text("")
    conf.check(stack, settings)
    stack.values["FRAUD_QUERY"] = "my_package.my_module:transform"
    conf.check(stack, settings)


def test_a_folder_that_was_emptied_changes_it_too(stack: Stack) -> None:
    file = stack.conf / "rules.yml"
    file.write_text("a")
    assert version(stack)
    file.unlink()
    assert version(stack) == ""
