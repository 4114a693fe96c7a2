"""Records that were removed from the input topic before the query had read them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.offsets import find_input_bounds, open_consumer
from fraud_filter.progress import CheckpointReader, Offsets
from fraud_filter.supervisor.failures import GO_ON_WITHOUT, DataLossError, RestartableError

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Losses:
    """What is gone: offsets by partition, from the first to before the second, and where to go on in all of them."""

    spans: dict[int, tuple[int, int]]
    go_on_at: Offsets


def find_losses(committed: Offsets, bounds: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """The lost offsets of each partition, from the first to before the second.

    A partition whose end lies before what was committed was made anew: what lay between is unknown, the range is then
    from its end to the committed offset. One that is gone is told as (committed, committed).
    """
    losses = {}
    for number, offset in sorted(committed.items()):
        first, end = bounds.get(number, (offset, -1))
        if first > offset:
            losses[number] = (offset, first)
        elif end < offset:
            losses[number] = (max(end, 0), offset) if number in bounds else (offset, offset)
    return losses


def check_losses(reader: CheckpointReader, settings: Settings) -> Losses | None:
    """Compares the newest commit with what the topic still holds.

    Returns:
        What is lost, where `fail_on_data_loss` is off; a warning names it. None when nothing is.

    Raises:
        DataLossError: records are lost and `fail_on_data_loss` is on.
        UsageError: the checkpoint belongs to a query over another source or topic.
        RestartableError: the brokers don't answer.
    """
    newest = reader.newest()
    if newest is None:
        return None
    if not newest.end:
        raise UsageError(
            f"setting checkpoint (--checkpoint, FRAUD_CHECKPOINT): {settings.checkpoint!r} was made by a query over "
            f"another source than the topic {settings.input_topic!r}; give that query's input_topic, or a new location"
        )
    bounds = _bounds(settings)
    losses = find_losses(newest.end, bounds)
    if not losses:
        return None
    told = ", ".join(_tell(number, span, bounds) for number, span in losses.items())
    if settings.fail_on_data_loss:
        raise DataLossError(
            f"unread records of the topic {settings.input_topic!r} are gone: {told}; committed was "
            f"{newest.end} at batch or epoch {newest.number} of the checkpoint {settings.checkpoint!r}; "
            f"{GO_ON_WITHOUT}"
        )
    lost = sum(end - start for start, end in losses.values())
    _log.warning("event=data_lost topic=%s records=%d lost=%r", settings.input_topic, lost, told)
    starts = {number: bounds[number][0] for number in losses if number in bounds}
    kept = {number: offset for number, offset in newest.end.items() if number not in losses}
    return Losses(losses, kept | starts)


def _bounds(settings: Settings) -> dict[int, tuple[int, int]]:
    try:
        with open_consumer(settings) as consumer:
            return find_input_bounds(consumer, settings)
    except FraudFilterError as error:
        raise RestartableError("broker-away", str(error)) from None


def _tell(number: int, span: tuple[int, int], bounds: Mapping[int, tuple[int, int]]) -> str:
    start, end = span
    if number not in bounds:
        return f"partition {number} does not exist any more"
    if bounds[number][1] < end:
        return f"partition {number} ends at offset {bounds[number][1]}, before the committed {end}: it was made anew"
    return f"partition {number} offsets {start} to {end - 1} ({end - start} records)"
