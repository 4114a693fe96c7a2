"""Command-line options that several verbs have; those of settings are made from them, so that names exist once."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from fraud_filter import config

#: What stands for a value of a type in the help.
_METAVARS: dict[Any, str] = {
    bool: "[true|false]",
    int: "INTEGER",
    float: "NUMBER",
    Path: "FILE",
    dict[str, str]: "JSON",
}


class GroupedCommand(click.Command):
    """A verb of many settings: its help has them under the titles of their groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verb's own options, then those of each group."""
        shown = {one.name: record for one in self.get_params(ctx) if (record := one.get_help_record(ctx))}
        groups = config.setting_groups().items()
        titled = {title: [shown.pop(name) for name in names if name in shown] for title, names in groups}
        for title, records in {"Options": list(shown.values()), **titled}.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


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
            option = config.option_name(name)
            if option:
                described = config.Settings.model_fields[name].description
                command = click.option(option, name, cls=_SettingOption, setting=name, help=described)(command)
        return command

    return decorate


class _SettingOption(click.Option):
    """The option of a setting: environment name and default in its help, its choices and files with Tab.

    `config` reads the environment and checks the value. Click does neither: an error names the setting then, wherever
    the value came from.
    """

    def __init__(self, *declarations: Any, setting: str, **options: Any) -> None:
        self._setting = setting
        field = config.Settings.model_fields[setting]
        choices = getattr(field.annotation, "__args__", ())
        self._choices: list[str] = [choice for choice in choices if isinstance(choice, str)]
        metavar = f"[{'|'.join(self._choices)}]" if self._choices else _METAVARS.get(field.annotation, "TEXT")
        options |= {"metavar": metavar, "type": click.Path() if field.annotation is Path else None}
        super().__init__(*declarations, default=None, **options)

    def get_help_extra(self, ctx: click.Context) -> Any:
        """What Click shows in brackets behind the help."""
        default = config.Settings.model_fields[self._setting].get_default(call_default_factory=True)
        shown = json.dumps(default) if isinstance(default, bool | dict) else str(default)
        own = {"envvars": (config.env_name(self._setting),), "default": shown or "none"}
        return {**super().get_help_extra(ctx), **own}

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The choices that begin so; else what Click completes by type."""
        if self._choices:
            return [CompletionItem(choice) for choice in self._choices if choice.startswith(incomplete)]
        return super().shell_complete(ctx, incomplete)
