"""Waiting until a filter has read all that the input topic holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fraud_filter.kafka.consumer import InputTopic
from lab.harness.processes import Child
from lab.harness.waiting import wait_until


def drain(
    topic: InputTopic,
    has_passed: Callable[[Mapping[int, int]], bool],
    timeout_s: float,
    otherwise: str,
    programs: Sequence[Child],
) -> dict[int, int]:
    """Waits for the decision on a mark behind the topic's last payment; returns the offsets of the mark.

    Payments that are not flagged leave no trace, but the mark after them comes out on the rejected topic.

    Args:
        has_passed: whether a decision about a record at or after these input offsets has come out.
        timeout_s, otherwise, programs: as `wait_until` takes them.

    Raises:
        TooLateError: it did not come in time.
        FraudFilterError: one of the programs ended.
    """
    end = topic.end_offsets()
    topic.mark_end()
    wait_until(lambda: has_passed(end), timeout_s, otherwise, programs)
    return end
