"""Two reports side by side: each figure of both, and how many times the first the second is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rich import box
from rich.table import Table
from rich.text import Text

from fraud_filter.errors import UsageError
from lab.bench.results.table import rounded

#: A figure that differs by more than this share is pointed out: ratios of two runs on one machine stay within it.
NOTABLE = 0.2

#: What every result of a report has had since the first one.
_NEEDED = {"mode", "rate", "keeps_up", "cpu_s_per_1000"}
_FIGURES = ("p50_ms", "p99_ms", "cpu_s_per_1000", "rss_mib")


class Comparison(NamedTuple):
    """One figure in both reports; None where a report lacks it."""

    name: str
    one: float | None
    other: float | None

    @property
    def times(self) -> float | None:
        """How many times `one` the `other` is."""
        return self.other / self.one if self.one and self.other is not None else None

    @property
    def is_single(self) -> bool:
        """Whether one report alone has it."""
        return (self.one is None) != (self.other is None)

    @property
    def is_notable(self) -> bool:
        """Whether both reports have it and differ by more than a fifth."""
        if self.is_single or self.one == self.other:
            return False
        return self.times is None or not 1 / (1 + NOTABLE) <= self.times <= 1 + NOTABLE


def load_report(path: Path) -> dict[str, Any]:
    """A `bench-report.json`.

    Raises:
        UsageError: the file can't be read, or is none.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} can't be read: {error}; give a bench-report.json of `make bench`") from None
    if not isinstance(data, dict) or not _is_report(data):
        raise UsageError(f"{path} is no report of a bench: give a bench-report.json of `make bench`")
    return data


def _is_report(data: Mapping[str, Any]) -> bool:
    results, ratios = data.get("results"), data.get("ratios")
    return (
        isinstance(results, list)
        and all(isinstance(one, dict) and one.keys() >= _NEEDED for one in results)
        and isinstance(ratios, dict)
        and all(isinstance(one, dict) for one in ratios.values())
    )


def compare(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[Comparison]:
    """All figures of two reports: first the ratios between contenders, then each contender's own at each rate.

    Ratios are those at the lowest rate of each report, so that reports with different ones have none in common.
    """
    ratios = [_ratios_by_rate(report) for report in (one, other)]
    found = [
        Comparison(f"{pair} {rate:g}/s {name}", *(report.get((pair, rate), {}).get(name) for report in ratios))
        for pair, rate in {**ratios[0], **ratios[1]}
        for name in ("p50", "p99")
    ]
    rows = [{(result["mode"], result["rate"]): result for result in report["results"]} for report in (one, other)]
    for mode, rate in {**rows[0], **rows[1]}:
        results = [row.get((mode, rate), {}) for row in rows]
        found += [
            Comparison(f"{mode} {rate:g}/s {name}", results[0].get(name), results[1].get(name)) for name in _FIGURES
        ]
    return found


def _ratios_by_rate(report: Mapping[str, Any]) -> dict[tuple[str, float], Mapping[str, float | None]]:
    lowest = min((float(result["rate"]) for result in report["results"]), default=0.0)
    return {(pair, lowest): ratio for pair, ratio in report["ratios"].items()}


def comparison_table(comparisons: list[Comparison], names: tuple[str, str]) -> Table:
    """The comparisons as a table; what differs notably, and what one report alone has, is marked."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    for heading in (*names, "times"):
        table.add_column(heading, justify="right", overflow="fold")
    table.add_column("")
    for line in comparisons:
        table.add_row(line.name, rounded(line.one), rounded(line.other), rounded(line.times), _mark(line))
    return table


def _mark(line: Comparison) -> Text:
    if line.is_notable:
        return Text("differs", style="bold yellow")
    return Text("in one only" if line.is_single else "", style="dim")
