"""Command-line options that several verbs have; those of settings are made from them, so that names exist once."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import click
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from fraud_filter import config
from fraud_filter.errors import UsageError


def settings_options(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds an option for each named setting (all of them when none is named) and passes `settings` to the verb.

    An option that is not given leaves the environment, `.env` and the default in force. Secrets get no option:
    a command line can be read by every process of the machine.
    """
    chosen = names or tuple(config.Settings.model_fields)

    def decorate(verb: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(verb)
        def with_settings(**arguments: Any) -> Any:
            given = {name: arguments.pop(name) for name in chosen if name in arguments}
            overrides = {name: value for name, value in given.items() if value is not None}
            return verb(settings=config.load(overrides), **arguments)

        command: Callable[..., Any] = with_settings
        for name in reversed(chosen):
            field = config.Settings.model_fields[name]
            if field.annotation is not SecretStr:
                command = click.option(
                    f"--{name.replace('_', '-')}",
                    name,
                    default=None,
                    help=_help(name, field),
                    metavar="VALUE",
                )(command)
        return command

    return decorate


def rate_option(default: float, what: str = "payments per second") -> Callable[..., Any]:
    """`--rate`: a number above 0, in `what`."""

    def require_finite(_: click.Context, __: click.Parameter, rate: float) -> float:
        if not math.isfinite(rate):
            raise UsageError(f"argument --rate: {rate:g} is not accepted: give a number above 0")
        return rate

    return click.option(
        "--rate",
        type=click.FloatRange(min=0, min_open=True),
        default=default,
        show_default=True,
        callback=require_finite,
        help=what,
    )


def _help(name: str, field: FieldInfo) -> str:
    choices = getattr(field.annotation, "__args__", ())
    allowed = f" ({', '.join(map(str, choices))})" if choices and isinstance(choices[0], str) else ""
    return f"{field.description}{allowed}  [{config.env_name(name)}; {field.get_default(call_default_factory=True)}]"
