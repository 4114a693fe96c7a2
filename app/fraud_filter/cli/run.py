"""`fraud-filter run`: the filter, in one mode, until it is stopped."""

from __future__ import annotations

import logging

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import Settings


@click.command()
@settings_options()
def command(settings: Settings) -> int:
    """Run the filter until SIGTERM or Ctrl-C."""
    from fraud_filter import supervisor

    logging.basicConfig(level=logging.INFO, format="%(asctime)s level=%(levelname)s %(message)s")
    for noisy in ("kafka", "py4j"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    return supervisor.run(settings)
