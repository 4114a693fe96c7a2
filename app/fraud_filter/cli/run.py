"""`fraud-filter run` and `handover`: the filter, until it is stopped; the second takes over from the one that runs."""

from __future__ import annotations

import logging
from typing import Literal

import click

from fraud_filter.cli.options import GroupedCommand, settings_options
from fraud_filter.config import Settings
from fraud_filter.text.logs import formatter

#: Modules of py4j that log the death of Java with stack traces, some of it past their own loggers.
_PY4J = ("clientserver", "java_gateway")


@click.command(cls=GroupedCommand)
@click.option(
    "--standby", is_flag=True, help="wait beside the filter that works on the checkpoint, warm, and take over from it"
)
@settings_options(*(name for name in Settings.model_fields if name not in ("topics_file", "probe_port")))
def command(settings: Settings, standby: bool) -> int:
    """Run the filter until SIGTERM or Ctrl-C; it is started again from its checkpoint after a failure.

    \b
    Exit codes:
      0  stopped by a signal, or handed over to another filter (`fraud-filter handover`)
      1  it can't run here: Java does not start, or the stop had to be forced
      2  bad input, or a checkpoint of another query: one sentence says what to change
      3  unread records are gone from the topic (fail_on_data_loss)
      4  max_restarts restarts in a row brought no progress
    docs/operate.md says more.
    """
    return _run(settings, standby=standby)


@click.command(cls=GroupedCommand)
@click.option(
    "--now",
    is_flag=True,
    help="end the running filter at once and not at its next commit; the log tells beforehand how many records may be "
    "read again",
)
@settings_options(*(name for name in Settings.model_fields if name not in ("topics_file", "probe_port")))
def handover(settings: Settings, now: bool) -> int:
    """Run the filter with these settings, other rules (--rules FILE) say, in place of the one that runs.

    The new one is checked and warmed up beside the running one, as a standby; bad input ends it with exit code 2 and
    changes nothing. Then it asks the running one to end, at its next commit (in real-time mode within
    real_time_duration), takes over, and runs on, until SIGTERM or Ctrl-C. Where no filter works on the checkpoint it
    starts at once.

    The former one ends with exit code 0; started with --standby, or by a handover, it waits as a standby: SIGUSR1
    has it take over again. Continuous mode has no commit without records after it: some milliseconds of them are read
    again. Exit codes as of `run`.
    """
    return _run(settings, standby=True, asks="now" if now else "commit")


def _run(settings: Settings, *, standby: bool = False, asks: Literal["commit", "now"] | None = None) -> int:
    """Runs it, with its log on stderr; arguments as of `supervisor.run`."""
    from fraud_filter import supervisor

    logging.basicConfig(level=logging.INFO)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(formatter(settings.log_format))
        handler.addFilter(lambda record: not (record.name == "root" and record.module in _PY4J))
    logging.getLogger("kafka").setLevel(logging.ERROR)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    return supervisor.run(settings, standby=standby, asks=asks)
