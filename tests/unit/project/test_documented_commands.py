"""Each command of README and docs can be called: its verb, options and values, its targets, variables and files.

None of them runs here: what takes seconds runs in `tests/embedded` and `tests/integration`, some take hours.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
import yaml

from documented_commands import PAGES, Call, find_calls, is_placeholder, split
from fraud_filter.cli.main import cli
from fraud_filter.config import Settings, env_name, load
from fraud_filter.errors import FraudFilterError
from fraud_filter.home import HOME
from lab.bench.contenders import parse_contenders
from lab.bench.names import parse_modes
from lab.bench.plan import parse_rates
from lab.trials.catalogue import choose
from lab.trials.plan import parse_ways
from making import make

CALLS = [call for page in PAGES for call in find_calls(page)]
#: What a verb reads out of an option's text after Click has taken it, by verb and option; "" is any verb.
READERS: dict[tuple[str, str], Callable[[str], object]] = {
    ("", "contenders"): lambda text: parse_contenders((text,)),
    ("", "modes"): parse_modes,
    ("", "rates"): parse_rates,
    ("trial", "disturbances"): choose,
    ("trial", "ways"): parse_ways,
}
#: Programs of the shell and of others, whose arguments are theirs.
OTHERS = {
    *(".", "cd", "cp", "echo", "git", "grep", "iptables", "nc", "openssl", "pip", "printf", "rm", "sed", "source"),
    *("tail", "true"),
}
#: `FRAUD_` names that are no settings of the program.
OWN_NAMES = {"FRAUD_ENV_FILE", "FRAUD_TEST_BROWSER", "FRAUD_TEST_PROMETHEUS"}
#: Options of `docker compose` that take a value.
_VALUED = {"--tail", "-s"}


def check(call: Call) -> None:
    """Fails when the command can't be called."""
    check_settings(call.settings)
    match call.words:
        case ():
            pass
        case ("fraud-filter", *words):
            check_verb(words, call.settings, whole=call.whole)
        case ("make", *words):
            check_make(words, whole=call.whole)
        case ("docker", "compose", subcommand, *words):
            check_service(subcommand, words)
        case ("docker", *_):
            pass
        case ("python" | "python3", "-m", module, *_):
            assert find_spec(module), module
        case ("python" | "pytest" | "promtool", *words):
            for word in words:
                assert "/" not in word or list(HOME.glob(word)), f"{word} does not exist"
        case (program, *_):
            assert program in OTHERS, f"{program} is no program that the documents may name"


def check_settings(given: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The settings of the program among what is assigned, by their own names."""
    by_name = {env_name(setting): setting for setting in Settings.model_fields}
    unknown = [name for name, _ in given if name.startswith("FRAUD_") and name not in {*by_name, *OWN_NAMES}]
    assert unknown == []
    known = {by_name[name]: value for name, value in given if name in by_name and not is_placeholder(value)}
    load(known)
    return known


def check_verb(words: Sequence[str], assigned: Sequence[tuple[str, str]] = (), *, whole: bool) -> None:
    """Has Click take the words of a call apart, and reads its values, without a call of the verb."""
    command: click.Command = cli
    context = click.Context(cli)
    values, rest, _ = command.make_parser(context).parse_args(list(words))
    while isinstance(command, click.Group) and rest:
        found = command.get_command(context, rest[0])
        assert found, f"no such verb: {rest[0]}"
        command, context = found, click.Context(found, parent=context, info_name=rest[0])
        values, rest, _ = command.make_parser(context).parse_args(rest[1:])
    assert rest == [], f"{rest} is too much"
    settings = check_settings(assigned)
    for parameter in command.get_params(context):
        value = values.get(parameter.name)
        for one in value if isinstance(value, list | tuple) else [value]:
            if isinstance(one, str) and one and not is_placeholder(one):
                _check_value(context, parameter, one, settings)
        if whole and parameter.required:
            assert isinstance(value, str | tuple), f"{parameter.name} is missing"
            assert value, f"{parameter.name} is empty"
    load(settings)


def _check_value(context: click.Context, parameter: click.Parameter, value: str, settings: dict[str, str]) -> None:
    name = str(parameter.name)
    if not isinstance(parameter.type, click.Path):  # a file may be written by a command before
        parameter.type.convert(value, parameter, context)
    read = READERS.get((str(context.info_name), name)) or READERS.get(("", name))
    if read:
        read(value)
    if isinstance(parameter, click.Option) and name in Settings.model_fields:
        settings[name] = value


def check_make(words: Sequence[str], *, whole: bool) -> None:
    """Has make say what it would do: with each variable it does something else, and its commands can be called."""
    variables = dict(word.split("=", 1) for word in words if "=" in word)
    targets = [word for word in words if "=" not in word]
    given = [word for word in words if not is_placeholder(word.partition("=")[2])]
    for name in variables:
        assert _would(*targets, f"{name}=other") != _would(*targets), f"make {' '.join(targets)} knows no {name}"
    for line in _would(*targets, *given[len(targets) :]).splitlines():
        if line.startswith(".venv/bin/fraud-filter ") and len(given) == len(words):
            check_verb(shlex.split(line)[1:], whole=whole)


@cache
def _would(*words: str) -> str:
    return make("-n", *words)


def check_service(subcommand: str, words: Sequence[str]) -> None:
    """Each service that a call of `docker compose` names is one of the stack's."""
    named = [word for before, word in zip(["", *words], words, strict=False) if before not in _VALUED]
    named = [word for word in named if not word.startswith("-")]
    assert {*named[: 1 if subcommand == "exec" else None]} <= _services()


@cache
def _services() -> set[str]:
    return {*yaml.safe_load((HOME / "docker-compose.yml").read_text(encoding="utf-8"))["services"]}


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_each_command_of_the_documents_can_be_called(call: Call) -> None:
    check(call)


@pytest.mark.parametrize(
    "line",
    [
        "fraud-filter rnu",
        "fraud-filter run now",
        "fraud-filter run --mod real-time",
        "fraud-filter run --mode realtime",
        "fraud-filter run --velocity-lag soon",
        "fraud-filter checkpoint look PATH",
        "fraud-filter lab bench --contenders continuous:linger=5",
        "fraud-filter lab bench --contenders flnk",
        "fraud-filter lab trial --ways real-time",
        "fraud-filter lab trial break",
        "FRAUD_MOD=continuous",
        "FRAUD_LINGER_MS=none",
        "make dmeo",
        "make bench RATE=100",
        "make bench RATES=many",
        "fraud-filter rollout --mode realtime",
        "docker compose logs filter",
        "pytest tests/unit/test_nothing.py",
        "python -m fraud_filter.nothing",
        "fraud-fitler run",
    ],
)
def test_a_wrong_command_is_found(line: str) -> None:
    for whole in (True, False):
        [call] = split(line, "a page", {}, whole=whole)
        with pytest.raises((AssertionError, click.ClickException, FraudFilterError, subprocess.CalledProcessError)):
            check(call)


def test_a_command_in_a_block_has_all_its_arguments() -> None:
    [call] = split("fraud-filter rules test", "a page", {}, whole=True)
    with pytest.raises(AssertionError, match="file is missing"):
        check(call)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_of_settings_in_the_documents_are_known(page: Path) -> None:
    stack = re.findall(r"^(?:# )?(\w+)=", (HOME / ".env.example").read_text(encoding="utf-8"), re.MULTILINE)
    known = {*map(env_name, Settings.model_fields), *OWN_NAMES, *stack}
    named = re.findall(r"\bFRAUD_[A-Z_]*[A-Z]\b", page.read_text(encoding="utf-8"))
    assert {*named} - known == set()


def test_targets_know_the_variables_that_their_help_names() -> None:
    for line in make().splitlines():
        target, *words = line.split()
        examples = [word.strip(";:,") for word in words if re.match(r"[A-Z]+=", word)]
        check_make([target, *examples], whole=False)
