"""The `fraud-filter` program: finds the verb, runs it, and turns errors into one sentence and an exit code."""

from __future__ import annotations

import importlib
import io
import logging
import sys
import traceback
from importlib.util import find_spec
from types import TracebackType

import click

import fraud_filter
from fraud_filter.cli.verbs import LazyGroup, Sections
from fraud_filter.errors import EXIT_USAGE, FraudFilterError
from fraud_filter.text.terminal import printable_lines

GROUPS: Sections = {
    "Run": {
        "up": ("fraud_filter.cli.compose:up", "Bring up the Compose stack and wait until all of it is healthy."),
        "rollout": (
            "fraud_filter.cli.compose:rollout",
            "Replace the stack's filter by its new rules, settings, code or mode; with a standby by a handover.",
        ),
        "down": ("fraud_filter.cli.compose:down", "Stop the stack; its data stays."),
        "run": ("fraud_filter.cli.run", "Run the filter until it is stopped."),
        "handover": (
            "fraud_filter.cli.run:handover",
            "Run the filter with other settings, in place of the one that runs.",
        ),
        "generate": (
            "fraud_filter.cli.generate",
            "Write records to Kafka at a set rate, made up or replayed from a file.",
        ),
        "init": ("fraud_filter.cli.config:init", "Write a project of your own: rules, schema, topics, settings."),
        "rules": ("fraud_filter.cli.rules", "Check the rules, or try them on a file of records."),
        "check-query": ("fraud_filter.cli.check_query", "Say in which modes a Python function of yours runs."),
        "train": ("fraud_filter.cli.train", "Learn from labelled payments which are fraud, and save the model."),
        "topics": ("fraud_filter.cli.kafka:topics", "Create the topics with their settings."),
        "access": ("fraud_filter.cli.kafka:access", "Create Kafka's users and set their rights."),
        "checkpoint": ("fraud_filter.cli.checkpoint", "Look into a checkpoint, or make another mode start from it."),
        "config": ("fraud_filter.cli.config:show", "Print the effective configuration."),
    },
    "Watch": {
        "status": ("fraud_filter.cli.compose:status", "Show the stack: health, mode, rates, latency, lag, addresses."),
        "health": ("fraud_filter.cli.watch:health", "Say whether the running filter is active and keeps up."),
        "probe": ("fraud_filter.cli.watch:probe", "Measure end-to-end latency from the output topics."),
        "tail": ("fraud_filter.cli.watch:tail", "Print decisions, or records, with their headers."),
        "audit": (
            "fraud_filter.cli.audit",
            "Compare what was written with what should have been: lost, duplicated, unexpected.",
        ),
    },
}
#: The module that has the verbs of the group "Prove", where it is installed: `fraud_filter` imports none of it.
_PROVING, _PROVES = "lab.cli.verbs", "Prove"


def groups() -> Sections:
    """All groups of verbs that are installed."""
    if find_spec(_PROVING.partition(".")[0]) is None:
        return GROUPS
    return GROUPS | {_PROVES: importlib.import_module(_PROVING).VERBS}


@click.group(cls=LazyGroup, sections=groups, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(fraud_filter.__version__, prog_name="fraud-filter")
def cli() -> None:
    """A fraud filter on Kafka and Spark that answers in milliseconds.

    Every setting can be given as an option, as an environment variable or in .env; `fraud-filter config` shows
    which one is in force. Exit codes: 0 done, 1 failed (an audit found losses), 2 bad input; `run` has more.
    """


class _BareFormatter(logging.Formatter):
    """Text without time and level. The log's library, most of the time that `--help` took, is imported when needed."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        from fraud_filter.text.logs import formatter

        return formatter("text", "%(message)s").format(record)


def main() -> None:
    """Runs the program and exits with the verb's code."""
    sys.excepthook = _show_defect
    if logging.lastResort:  # what verbs without logs of their own warn of
        logging.lastResort.setFormatter(_BareFormatter())
    try:
        code = cli.main(prog_name="fraud-filter", standalone_mode=False)
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
