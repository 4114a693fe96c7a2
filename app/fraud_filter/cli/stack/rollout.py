"""`fraud-filter rollout`: other rules, settings or images for the stack's filter, by a handover to its standby."""

from __future__ import annotations

from pathlib import Path

import click

from fraud_filter.cli.stack.options import env_file_option, now_option, timeout_option


@click.command()
@env_file_option
@timeout_option
@now_option
def command(env: Path, timeout_s: float, now: bool) -> None:
    """Build the images, and replace the stack's filter by what .env, the folder conf and the images say now.

    With a standby (`up --standby`) that one is replaced first and warms up; the active one hands over to it at its next
    commit, in real-time mode within real_time_duration, and is replaced once payments are decided. Until then it is a
    warm way back: it takes over should the new one fail. Without a standby the filter is stopped and started again.
    Exit codes: 0 done, or nothing to do; 1 a filter did not become ready: the active one runs on; 2 bad input.
    """
    from fraud_filter.compose import conf, env_file, images
    from fraud_filter.compose.checks import check_all, check_rules_in_image
    from fraud_filter.compose.moving.switching import roll_out
    from fraud_filter.compose.stack import Stack

    stack = Stack.open(env.resolve())
    env_file.require(stack.env, stack.values)
    check_all(stack)
    conf.prepare(stack)
    images.prepare(stack)
    check_rules_in_image(stack)  # before the standby is replaced: with rules that are refused it could not start
    took = roll_out(stack, timeout_s, now=now)
    click.echo(f"rolled out in {took:.0f} s" if took else "both filters are up to date: nothing to do")
