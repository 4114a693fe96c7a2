"""The folder `conf` beside `.env`: what tells that a file of it has changed."""

from __future__ import annotations

from fraud_filter.compose import conf, env_file
from fraud_filter.compose.stack import Stack


def version(stack: Stack) -> str:
    conf.prepare(stack)
    return env_file.read(stack.env).get("CONF_VERSION", "")


def test_an_empty_folder_changes_no_line(stack: Stack) -> None:
    before = stack.env.read_text()
    assert version(stack) == ""
    assert stack.env.read_text() == before


def test_each_change_of_a_file_changes_the_version(stack: Stack) -> None:
    seen = []
    for name, text in (("rules.yml", "a"), ("rules.yml", "b"), ("lists/blocked.txt", "b")):
        file = stack.conf / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        seen.append(version(stack))
        assert version(stack) == seen[-1]
    assert len({"", *seen}) == 4


def test_a_folder_that_was_emptied_changes_it_too(stack: Stack) -> None:
    file = stack.conf / "rules.yml"
    file.write_text("a")
    assert version(stack)
    file.unlink()
    assert version(stack) == ""
