from __future__ import annotations

from dataclasses import dataclass

from fraud_filter.generator.sender import GeneratorMetrics
from fraud_filter.metrics.server import Registry


@dataclass
class Counts:
    sent: int = 0
    failed: int = 0
    late: int = 0


def test_the_counts_are_read_at_each_scrape() -> None:
    registry, counts = Registry(), Counts()
    GeneratorMetrics(registry, counts)
    assert registry.get_sample_value("fraud_filter_generator_sent_records_total") == 0
    counts.sent, counts.failed, counts.late = 7, 2, 1
    for name, value in (("sent", 7), ("failed", 2), ("late", 1)):
        assert registry.get_sample_value(f"fraud_filter_generator_{name}_records_total") == value
