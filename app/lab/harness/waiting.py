"""Waiting for what programs of ours bring about, no longer than they live."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from operator import not_

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from fraud_filter.errors import FraudFilterError
from lab.harness.processes import Child

#: Seconds between two looks.
_TICK_S = 0.1


class TooLateError(FraudFilterError):
    """What was waited for did not come in time."""


def wait_until(
    condition: Callable[[], bool],
    timeout_s: float,
    otherwise: str,
    programs: Sequence[Child] = (),
    every_s: float = _TICK_S,
) -> None:
    """Waits until `condition` holds, while all `programs` run.

    Args:
        timeout_s: the longest wait, in seconds.
        every_s: from one look to the next.
        otherwise: the message of a wait in vain, without the time: "nothing was flagged".

    Raises:
        TooLateError: the condition did not hold in time.
        FraudFilterError: one of the programs ended; its last lines are in the message.
    """

    def look() -> bool:
        if condition():
            return True
        raise_if_dead(programs)
        return False

    looking = Retrying(retry=retry_if_result(not_), wait=wait_fixed(every_s), stop=stop_after_delay(timeout_s))
    try:
        looking(look)
    except RetryError:
        raise TooLateError(f"{otherwise} within {timeout_s:g} s") from None


def let_pass(seconds: float, programs: Sequence[Child]) -> None:
    """Lets `seconds` pass, while all `programs` run."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, _TICK_S))
        raise_if_dead(programs)


def raise_if_dead(programs: Sequence[Child]) -> None:
    """Does nothing while all of them run.

    Raises:
        FraudFilterError: one has ended; its last lines are in the message.
    """
    for program in programs:
        program.raise_if_dead()
