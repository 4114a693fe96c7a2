"""Faults of the checkpoint: its disk is full, or the newest entry of one of its logs is damaged or gone."""

from __future__ import annotations

import time

from fraud_filter.compose.stack import FILTER
from lab.faults.effect import Effect
from lab.faults.outages import OUTAGE_S
from lab.harness.compose_stack import KEEPER, ComposeStack

_VOLUME = "/var/lib/fraud-filter"
_LOGS = f"{_VOLUME}/checkpoint"
#: Appends until nothing more fits, with smaller pieces at the end.
_FILL = f"for size in 1M 4k 1; do dd if=/dev/zero bs=$size >>{_VOLUME}/filler 2>/dev/null; done; df {_VOLUME} | tail -1"
#: How often: Spark removes files meanwhile, and what that frees is filled, too.
_REFILL_S = 0.5
_EMPTY = f"rm -f {_VOLUME}/filler"
#: The newest entry of a log; fails when it is empty.
_NEWEST = f'cd {_LOGS}/$1 && newest=$(ls | grep -E "^[0-9]+$" | sort -n | tail -1) && [ -n "$newest" ]'
#: The first half of the entry, then what is no JSON, as a write that was torn leaves it. Its checksum stays.
_OVERWRITE = f"""{_NEWEST} && size=$(wc -c <"$newest") && half=$(head -c $((size / 2)) "$newest") &&
    printf '%s\\377\\000torn' "$half" >"$newest" && echo "$newest"
"""
_DELETE = f'{_NEWEST} && rm "$newest" && echo "$newest"'


def fill_disk(stage: ComposeStack) -> Effect:
    """Fills the checkpoint's file system, keeps it full for a while, and frees it."""
    until = time.monotonic() + OUTAGE_S
    try:
        while time.monotonic() < until:
            stage.execute(KEEPER, _FILL)
            time.sleep(_REFILL_S)
    finally:
        stage.execute(KEEPER, _EMPTY)
    return Effect()


def corrupt_offsets(stage: ComposeStack) -> Effect:
    """Kills the filter, overwrites the newest entry of the offset log, and starts the filter."""
    return _while_killed(stage, _OVERWRITE, "offsets")


def delete_commit(stage: ComposeStack) -> Effect:
    """Kills the filter, deletes the newest entry of the commit log, and starts the filter."""
    return _while_killed(stage, _DELETE, "commits")


def _while_killed(stage: ComposeStack, script: str, log: str) -> Effect:
    container = stage.container(FILTER)
    container.kill()
    try:
        stage.execute(KEEPER, script, log)
    finally:
        effect = Effect()
        container.start()
    return effect
