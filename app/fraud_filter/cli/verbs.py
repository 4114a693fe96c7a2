"""Groups of verbs that are imported when they are called; what verbs were called before, and which extra one lacks.

The base installation has what running the filter needs; extras of the package hold the rest.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import click

from fraud_filter.errors import UsageError
from fraud_filter.text.nearest import did_you_mean

#: Heading of --help -> verb -> (its module, or MODULE:NAME where it is not called `command`; one line for --help).
Sections = dict[str, dict[str, tuple[str, str]]]

#: A verb that was renamed or taken out -> what is said of it. A verb of a group is "GROUP VERB".
FORMER = {
    "backlog": "is now `fraud-filter lab trial outage`",
    "bench": "is now `fraud-filter lab bench`",
    "bench-compare": "is gone: `fraud-filter lab bench --contenders A,B` measures both in one run",
    "capacity": "is gone: docs/scaling.md has its formulas",
    "experiment": "is now `fraud-filter lab bench --contenders MODE,MODE:SETTING=VALUE`",
    "faults": "is now `fraud-filter lab trial all --stack`",
    "lab capacity": "is gone: docs/scaling.md has its formulas",
    "report": "is gone: Grafana's dashboards show the same, and Prometheus' own page, at the addresses that "
    "`fraud-filter status` prints",
    "rules deploy": "is now `fraud-filter handover --rules FILE`",
    "soak": "is now `fraud-filter lab trial random --stack`",
    "stack": "is now `fraud-filter lab broker`",
    "switch": "is now `fraud-filter rollout --mode MODE`",
    "takeover": "is now `fraud-filter lab trial kill`",
    "transitions": "is now `fraud-filter lab trial stop,kill --ways all`",
}


_BURSTS = "the rate is steady: for a burst call `fraud-filter generate --rate N --seconds S` beside it"
#: An option that is gone -> what to do instead; those of settings are in `config.GONE`.
FORMER_OPTIONS = {
    "--clock-offset": "leave it out: latency is measured by the brokers' clock, and no sender's",
    "--interrupt": "`fraud-filter lab trial kill,handover,rules,switch` does that",
    **dict.fromkeys(("--burst-every", "--burst-length", "--burst-rate", "--profile"), _BURSTS),
    "--ramp-seconds": "give `--rate`, and call `fraud-filter generate` again for another rate",
    "--ramp-to": "give `--rate`, and call `fraud-filter generate` again for another rate",
    "--report": "`--json` prints the report as JSON: redirect it into a file",
    "--rollback": "send SIGUSR1 to the filter that waits: it takes over again at the next commit",
}
#: extra -> the modules that its packages bring, by the names that they are imported by.
EXTRAS = {
    "generate": ("duckdb", "faker"),
    "audit": ("duckdb", "pyarrow"),
    "stack": ("bcrypt", "docker", "jwt"),
    "lab": ("jinja2", "matplotlib"),
}
#: The extra that holds all others, for the verbs that prove the filter.
_ALL = "lab"


class Group(click.Group):
    """A group of verbs that says what a former one is called now."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Refuses an unknown verb, and says what a former one is called now."""
        known, asked = self.list_commands(ctx), args[0]
        if asked not in known and not asked.startswith("-") and not ctx.resilient_parsing:
            if said := FORMER.get(_full_name(ctx, asked)):
                raise UsageError(f"`fraud-filter {_full_name(ctx, asked)}` {said}")
            ctx.fail(f"No such command {asked!r}{did_you_mean(asked, known)}.")
        return super().resolve_command(ctx, args)


class LazyGroup(Group):
    """Imports a verb's module only when it is called: Spark and plots stay out of `--help`.

    Args:
        sections: says which verbs there are, whenever it is asked.
    """

    def __init__(self, *arguments: Any, sections: Callable[[], Sections], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._sections = sections

    def _modules(self) -> dict[str, str]:
        return {verb: module for verbs in self._sections().values() for verb, (module, _) in verbs.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """All verbs, in the order of --help."""
        return list(self._modules())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Imports the verb's module."""
        module = self._modules().get(cmd_name)
        if module is None:
            return None
        name, _, attribute = module.partition(":")
        command: click.Command = getattr(importlib.import_module(name), attribute or "command")
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the verb; says which extra it lacks, or what stands for an option of a setting that is gone."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            verb = ctx.invoked_subcommand or ""
            in_lab = self._modules().get(verb, "").startswith("lab.")
            lack = lacking(_full_name(ctx, verb), error, proves=in_lab)
            if lack is None:
                raise
            raise lack from None
        except click.NoSuchOption as error:
            from fraud_filter.config import GONE

            name = error.option_name
            remedy = FORMER_OPTIONS.get(name) or GONE.get(name.lstrip("-").replace("-", "_"))
            if remedy is None:
                raise
            raise UsageError(f"{name} is no option any more: {remedy}") from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The verbs under their headings."""
        for name, verbs in self._sections().items():
            with formatter.section(name):
                formatter.write_dl([(verb, line) for verb, (_, line) in verbs.items()])


def _full_name(ctx: click.Context, verb: str) -> str:
    """The verb as it is called, without the program's name."""
    groups: list[str] = []
    while ctx.parent:
        groups.insert(0, ctx.info_name or "")
        ctx = ctx.parent
    return " ".join([*groups, verb])


def lacking(verb: str, error: ModuleNotFoundError, *, proves: bool) -> UsageError | None:
    """What to say where `verb` could not import a module; None: no extra has it, and the installation is broken.

    Args:
        verb: the verb that was called, after its groups.
        error: what Python said.
        proves: whether the verb is one of the lab's.
    """
    module = (error.name or "").partition(".")[0]
    holding = [extra for extra, modules in EXTRAS.items() if module in modules]
    if not holding:
        return None
    extra = _ALL if proves else verb if verb in holding else holding[0]
    return UsageError(
        f"`fraud-filter {verb}` needs the package {module}, which is not installed: pip install 'fraud-filter[{extra}]'"
    )
