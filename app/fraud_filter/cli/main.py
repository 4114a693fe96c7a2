"""The `fraud-filter` program: finds the verb, runs it, and turns errors into one sentence and an exit code."""

from __future__ import annotations

import importlib
import io
import logging
import sys
import traceback
from types import TracebackType

import click

import fraud_filter
from fraud_filter.errors import EXIT_USAGE, FraudFilterError
from fraud_filter.terminal import PrintableFormatter, printable_lines

#: verb -> (module below fraud_filter.cli, one line for --help). Modules are imported when their verb is called.
VERBS = {
    "up": ("up", "Bring up the Compose stack and wait until all of it is healthy."),
    "status": ("status", "Show the stack: health, mode, rates, latency, lag, addresses."),
    "switch": ("switch", "Move the stack's filter to another mode on the same checkpoint."),
    "down": ("down", "Stop the stack; its data stays."),
    "run": ("run", "Run the filter until it is stopped."),
    "health": ("health", "Say whether the running filter is active and keeps up."),
    "generate": ("generate", "Write payments to Kafka at a set rate, made up or replayed from a file."),
    "probe": ("probe", "Measure end-to-end latency from the output topics."),
    "audit": ("audit", "Compare what was written with what should have been: lost, duplicated, unexpected."),
    "report": ("report", "Write a page of plots from Prometheus' data: latency, rates, lag, events."),
    "rules": ("rules", "Check the rules, or try them on a file of payments."),
    "topics": ("topics", "Create the topics with their settings."),
    "access": ("access", "Make Kafka's users and their rights."),
    "checkpoint": ("checkpoint", "Look into a checkpoint, or make another mode start from it."),
    "config": ("config", "Print the effective configuration."),
    "demo": ("demo", "Run every mode in turn on an embedded Kafka and Spark, and report."),
    "bench": ("bench", "Set modes, a plain client and Flink side by side under load: latency, cost, audit."),
    "bench-compare": ("bench_compare", "Show two reports of the bench side by side."),
    "capacity": ("capacity", "Estimate what a rate needs, from the costs in a report of the bench."),
    "experiment": ("experiment", "See what a changed setting does to a mode, side by side in one run."),
    "transitions": ("transitions", "Change the mode in every way under load on an embedded stack, and audit."),
    "backlog": ("backlog", "Work off a backlog in each mode on an embedded stack: time, memory, audit."),
    "faults": ("faults", "Put faults into a Compose stack of its own under load, and audit after each."),
    "soak": ("soak", "Let a stack run with random faults, audit all of it, and look for growth."),
    "stack": ("stack", "Run an embedded Kafka broker on this machine until it is stopped."),
}


class _Verbs(click.Group):
    """Imports a verb's module only when it is called: Spark and plots stay out of `--help`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"fraud_filter.cli.{VERBS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, line) for verb, (_, line) in VERBS.items()])


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(fraud_filter.__version__, prog_name="fraud-filter")
def cli() -> None:
    """A fraud filter on Kafka and Spark that answers in milliseconds.

    Every setting can be given as an option, as an environment variable or in .env; `fraud-filter config` shows
    which one is in force. Exit codes: 0 done, 1 failed (an audit found losses), 2 bad input; `run` has more.
    """


def main() -> None:
    """Runs the program and exits with the verb's code."""
    sys.excepthook = _show_defect
    if logging.lastResort:  # what verbs without logs of their own warn of
        logging.lastResort.setFormatter(PrintableFormatter())
    try:
        code = cli.main(standalone_mode=False)
    except FraudFilterError as error:
        click.echo(printable_lines(f"fraud-filter: {error}"), err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        click.echo(printable_lines(shown.getvalue()), err=True, nl=False)
        sys.exit(EXIT_USAGE)
    except click.Abort:
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)


def _show_defect(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A stack trace as Python's own, whatever its message quotes."""
    click.echo(printable_lines("".join(traceback.format_exception(kind, error, trace))), err=True, nl=False)
