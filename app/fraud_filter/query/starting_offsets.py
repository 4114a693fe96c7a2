"""Where a query without a checkpoint begins: the setting `starting_offsets` against the input topic's partitions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from fraud_filter.config import Settings, refused

_NAMED = ("earliest", "latest")
#: Spark's number for the first offset that the topic holds (Spark guide, "Kafka": startingOffsets).
_EARLIEST = -2


def complete(settings: Settings, partitions: int) -> Settings:
    """The settings with an offset for each partition: those that are not named begin at the earliest.

    Spark demands all of them, and says so when the query runs already.

    Args:
        partitions: those of the input topic.

    Raises:
        UsageError: it is neither a word nor offsets of the input topic alone, or names a partition that is not there.
    """
    if settings.source != "kafka" or settings.starting_offsets in _NAMED:
        return settings
    given = _parse(settings)
    unknown = sorted(number for number in given if number not in range(partitions))
    if unknown:
        reason = f"names partitions that {settings.input_topic!r} has not: {', '.join(map(str, unknown))}"
        raise refused("starting_offsets", settings.starting_offsets, reason, f"it has 0 to {partitions - 1}")
    return begin_at(settings, given, range(partitions))


def require_there(settings: Settings, at: Mapping[int, int], bounds: Mapping[int, tuple[int, int]]) -> None:
    """Checks that a query without a checkpoint begins at offsets that the topic has, or at its end.

    A word is always there: where the topic ends was read after `bounds`, and may be beyond them by now.

    Args:
        at: where it would begin, by partition.
        bounds: first and end offset by partition, records of open transactions included.

    Raises:
        UsageError: names the partitions whose offset lies before the first retained one or beyond the end.
    """
    if settings.starting_offsets in _NAMED:
        return
    absent = [
        f"partition {number} has offsets {low} to {end}, not {at[number]}"
        for number, (low, end) in sorted(bounds.items())
        if number in at and not low <= at[number] <= end
    ]
    if absent:
        remedy = f"give offsets within these, or {' or '.join(_NAMED)}"
        raise refused("starting_offsets", settings.starting_offsets, f"is not there: {'; '.join(absent)}", remedy)


def begin_at(settings: Settings, at: Mapping[int, int], partitions: Iterable[int]) -> Settings:
    """The settings with the offset of each partition, the earliest where `at` names none."""
    offsets = {str(number): at.get(number, _EARLIEST) for number in partitions}
    return settings.model_copy(update={"starting_offsets": json.dumps({settings.input_topic: offsets})})


def _parse(settings: Settings) -> dict[int, int]:
    try:
        topics = json.loads(settings.starting_offsets)
        offsets = topics[settings.input_topic]
        if len(topics) > 1 or not all(isinstance(offset, int) and offset >= _EARLIEST for offset in offsets.values()):
            raise ValueError(topics)
        return {int(number): offset for number, offset in offsets.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        example = f'{{"{settings.input_topic}": {{"0": 12, "1": 3}}}}'
        remedy = f"give {', '.join(_NAMED)}, or JSON such as {example}"
        raise refused("starting_offsets", settings.starting_offsets, "is not accepted", remedy) from None
