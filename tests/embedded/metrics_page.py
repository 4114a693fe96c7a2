"""The page on which a filter serves its metrics, series by series."""

from __future__ import annotations

from dataclasses import dataclass

import requests
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

#: Type and label names of each series.
Shape = dict[str, tuple[str, tuple[str, ...]]]


@dataclass(frozen=True)
class Page:
    """What a filter serves."""

    port: int

    def families(self) -> list[Metric]:
        """All that it serves now; nothing before it listens."""
        try:
            page = requests.get(f"http://127.0.0.1:{self.port}/metrics", timeout=30)
        except requests.ConnectionError:
            return []
        return list(text_string_to_metric_families(page.text))

    def samples(self, name: str) -> list[Sample]:
        """All of this name."""
        return [sample for family in self.families() for sample in family.samples if sample.name == name]

    def values(self, name: str, label: str = "partition") -> dict[str, float]:
        """Values by partition or another label, or by "" where there is none."""
        return {sample.labels.get(label, ""): sample.value for sample in self.samples(name)}

    def shape(self) -> Shape:
        """Type and label names of every series."""
        return {s.name: (family.type, tuple(sorted(s.labels))) for family in self.families() for s in family.samples}
