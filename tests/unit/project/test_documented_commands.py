"""Each command of README and docs can be called: its verb, options and values, its targets, services and files.

None of them runs here: what takes seconds runs in `tests/embedded` and `tests/integration`, some take hours.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click
import pytest
import yaml

from fraud_filter.cli.main import cli
from fraud_filter.config import Settings, env_name, load
from fraud_filter.home import HOME
from lab.bench.contenders import parse_contenders
from lab.bench.names import parse_modes
from lab.bench.plan import parse_rates
from lab.trials.catalogue import choose
from lab.trials.plan import parse_ways
from tools import upstream

PAGES = [
    *(HOME / page for page in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "monitoring/README.md")),
    *sorted((HOME / "docs").rglob("*.md")),
]
#: A fenced block of code, with what is behind its fence; and what is code in a sentence, which may be broken once.
_BLOCK = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
_INLINE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
#: How a command begins, in sentences and in blocks that are no shell's.
_BEGINS = re.compile(
    r"(?:\$ |[A-Z_]+=\S+ )*(?:\.venv/bin/)?(?:fraud-filter|make|docker|pytest|promtool|python) |(?:\$ )?FRAUD_\w+="
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]+=.*", re.DOTALL)
#: What stands for a value: `MODE`, `CHANGE…`, `…`.
_PLACEHOLDER = re.compile(r"[A-Z]+…?|.*…")

SETTINGS = {env_name(setting): setting for setting in Settings.model_fields}
#: `FRAUD_` names that are no settings of the program.
OWN_NAMES = {"FRAUD_ENV_FILE", "FRAUD_TEST_BROWSER", "FRAUD_TEST_PROMETHEUS"}
SERVICES = {*yaml.safe_load((HOME / "docker-compose.yml").read_text(encoding="utf-8"))["services"]}
_MAKEFILE = (HOME / "Makefile").read_text(encoding="utf-8")
TARGETS = {*re.findall(r"^([\w-]+):", _MAKEFILE, re.MULTILINE), *re.findall(r"^READY := (.+)", _MAKEFILE, re.MULTILINE)}
#: What a verb reads out of an option's text after Click has taken it, by option.
READERS: dict[str, Callable[[str], object]] = {
    "contenders": lambda text: parse_contenders((text,)),
    "modes": parse_modes,
    "rates": parse_rates,
    "disturbances": choose,
    "ways": parse_ways,
}


def commands(page: Path) -> Iterator[tuple[list[str], bool]]:
    """The words of each command; and whether it is in a block, so that it has all its arguments."""
    text = page.read_text(encoding="utf-8")
    for language, block in _BLOCK.findall(text):
        for line in block.splitlines():
            if language == "sh" or _BEGINS.match(line):
                yield from ((words, True) for words in split(line.removeprefix("$ ")))
    for code in _INLINE.findall(_BLOCK.sub("", text)):
        if _BEGINS.match(line := " ".join(code.replace(r"\|", "|").split())):
            yield from ((words, False) for words in split(line))


def split(line: str) -> Iterator[list[str]]:
    """The commands of a line of shell."""
    lexer = shlex.shlex(line.replace(".venv/bin/", ""), posix=True, punctuation_chars=";|&")
    lexer.whitespace_split = True
    for between, words in itertools.groupby(lexer, lambda word: set(word) <= set(lexer.punctuation_chars)):
        if not between:
            yield [word for word in words if word != "export"]


def check(words: Sequence[str], *, whole: bool) -> None:
    """Fails when the command can't be called."""
    assigned = dict(word.split("=", 1) for word in itertools.takewhile(_ASSIGNMENT.fullmatch, words))
    settings = {SETTINGS[name]: value for name, value in assigned.items() if name in SETTINGS}
    match words[len(assigned) :]:
        case ["fraud-filter", *rest]:
            settings |= check_verb(rest, whole=whole)
        case ["python", "tools/upstream.py", *rest]:
            settings |= check_verb(rest, whole=whole, command=upstream.main)
        case ["make", *targets]:
            assert {*targets} <= TARGETS
        case ["docker", "compose", subcommand, *rest] if rest:
            assert rest[0 if subcommand == "exec" else -1] in SERVICES
        case ["pytest" | "promtool", *rest]:
            assert all(list(HOME.glob(word)) for word in rest if "/" in word)
    load(settings)


def check_verb(words: Sequence[str], *, whole: bool, command: click.Command = cli) -> dict[str, str]:
    """Has Click take the words of a call apart, and reads its values; returns those of settings."""
    context = click.Context(command)
    values, rest, _ = command.make_parser(context).parse_args(list(words))
    while isinstance(command, click.Group) and rest:
        found = command.get_command(context, rest[0])
        assert found, f"no such verb: {rest[0]}"
        command, context = found, click.Context(found, parent=context, info_name=rest[0])
        values, rest, _ = command.make_parser(context).parse_args(rest[1:])
    assert rest == [], f"{rest} is too much"
    settings: dict[str, str] = {}
    for parameter in command.get_params(context):
        name, value = str(parameter.name), values.get(str(parameter.name))
        if whole and parameter.required:
            assert isinstance(value, str | tuple), f"{name} is missing"
            assert value, f"{name} is empty"
        for one in value if isinstance(value, list | tuple) else [value]:
            if not isinstance(one, str) or not one or _PLACEHOLDER.fullmatch(one):
                continue
            if not isinstance(parameter.type, click.Path):  # a file may be written by a command before
                parameter.type.convert(one, parameter, context)
            READERS.get(name, str)(one)
            if isinstance(parameter, click.Option) and name in Settings.model_fields:
                settings[name] = one
    return settings


@pytest.mark.parametrize(
    ("words", "whole"),
    [
        pytest.param(*command, id=f"{page.relative_to(HOME)}: {shlex.join(command[0])}")
        for page in PAGES
        for command in commands(page)
    ],
)
def test_each_command_of_the_documents_can_be_called(words: list[str], whole: bool) -> None:
    check(words, whole=whole)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_of_settings_in_the_documents_are_known(page: Path) -> None:
    stack = re.findall(r"^(?:# )?(\w+)=", (HOME / ".env.example").read_text(encoding="utf-8"), re.MULTILINE)
    named = re.findall(r"\bFRAUD_[A-Z_]*[A-Z]\b", page.read_text(encoding="utf-8"))
    assert {*named} - {*SETTINGS, *OWN_NAMES, *stack} == set()
