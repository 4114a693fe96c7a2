"""`fraud-filter handover`: a filter with other settings takes over from the one that runs, once it is warm."""

from __future__ import annotations

import click

from fraud_filter.cli.options import GroupedCommand, settings_options
from fraud_filter.cli.run import run
from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_OK


@click.command(cls=GroupedCommand)
@click.option(
    "--now",
    is_flag=True,
    help="end the running filter at once and not at its next commit; the log tells beforehand how many records may be "
    "decided again",
)
@click.option(
    "--rollback",
    is_flag=True,
    help="run nothing: the former filter, which waits, warm, takes over again with its own rules, mode and settings; "
    "of those given here checkpoint and spark_conf count",
)
@settings_options(*(name for name in Settings.model_fields if name not in ("topics_file", "probe_port")))
def command(settings: Settings, now: bool, rollback: bool) -> int:
    """Run the filter with these settings, other rules (--rules FILE) say, in place of the one that runs.

    The new one is checked and warmed up beside the running one, as a standby; bad input ends it with exit code 2 and
    changes nothing. Then it asks the running one to end, at its next commit (in real-time mode within
    real_time_duration), takes over, and runs on, until SIGTERM or Ctrl-C. Where no filter works on the checkpoint it
    starts at once.

    The former one ends with exit code 0; started with --standby, or by a handover, it waits as a standby: --rollback
    hands back to it. Continuous mode has no commit without records after it: some milliseconds of them are decided
    again. Exit codes as of `run`.
    """
    if rollback:
        return _roll_back(settings, now=now)
    return run(settings, standby=True, asks="now" if now else "commit")


def _roll_back(settings: Settings, *, now: bool) -> int:
    from fraud_filter.checkpoint.files import open_checkpoint
    from fraud_filter.supervisor.rollback import roll_back

    with open_checkpoint(settings.checkpoint, settings) as files:
        roll_back(files, settings, "now" if now else "commit", lambda text: click.echo(text, err=True))
    click.echo("the former filter works again, and the one that it took over from waits in its place")
    return EXIT_OK
