"""Options that the verbs of the Compose stack share."""

from __future__ import annotations

from pathlib import Path

import click

from fraud_filter.config import default_env_file

env_file_option = click.option(
    "--env-file",
    "env",
    type=click.Path(dir_okay=False, path_type=Path),
    default=lambda: default_env_file().resolve(),
    metavar="FILE",
    help="the stack's settings; another file with another COMPOSE_PROJECT_NAME is another stack  [.env]",
)
timeout_option = click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=1),
    default=300.0,
    show_default=True,
    help="seconds until every service must be healthy",
)
now_option = click.option(
    "--now",
    is_flag=True,
    help="with a standby: the active filter ends at once and not at its next commit; what came since is decided again",
)
