"""Gaps between decisions, from records as a consumer gives them."""

from __future__ import annotations

from typing import Any

from fraud_filter import schema as layout
from lab.takeover.gap import FlaggedTail, Gap


class Record:
    """A decision about a payment of a partition, appended so many seconds after 1970."""

    def __init__(self, partition: int, at: float) -> None:
        self.partition, self.at = partition, at

    def error(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 2, round(self.at * 1000)

    def headers(self) -> list[tuple[str, bytes]]:
        texts = {
            layout.HEADER_TOPIC: "payments",
            layout.HEADER_PARTITION: str(self.partition),
            layout.HEADER_OFFSET: "0",
            layout.HEADER_TIMESTAMP: str(round(self.at * 1000) - 1),
        }
        return [(name, text.encode()) for name, text in texts.items()]


class Records:
    """What a consumer would give, all at once."""

    def __init__(self, *records: Record) -> None:
        self._records = list(records)

    def consume(self, _: int, timeout: float) -> list[Record]:
        assert timeout > 0
        given, self._records = self._records, []
        return given


def longest(*records: Record) -> Gap:
    consumer: Any = Records(*records)
    tail = FlaggedTail(consumer, 2)
    tail.read()
    return tail.longest


def test_the_longest_gap_is_that_between_any_two_and_within_a_partition() -> None:
    assert longest(Record(0, 10.0), Record(1, 10.4), Record(0, 11.0), Record(1, 11.9)) == Gap(0.9, 1.5)


def test_one_decision_is_no_gap() -> None:
    assert longest(Record(0, 10.0)) == Gap(0.0, 0.0)
