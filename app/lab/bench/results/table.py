"""The table that ends a bench: latency, cost and audit of each contender at each rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from fraud_filter.pages.numbers import NOT_MEASURED, format_number
from fraud_filter.text.tables import markdown
from lab.harness.outcome import must_be_zero


def result_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """The `results` of a report; latencies in milliseconds, red is what must be zero and is not.

    They are from append to append, but for `due p99`: from when a payment was meant to be sent.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("\ncontender", no_wrap=True)
    headings = (
        "rate\n/s",
        "p50\nms",
        "p90\nms",
        "p99\nms",
        "p99.9\nms",
        "max\nms",
        "due p99\nms",
        "spread\np50 %",
        "CPU s\n/1000",
    )
    for heading in (*headings, "memory\nMiB", "\nlost", "dupli-\ncated", "unex-\npected"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        table.add_row(
            Text(result["mode"], style="bold" if result["keeps_up"] else "bold red"),
            format_number(result["rate"]),
            *(rounded(result[name]) for name in ("p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms", "due_p99_ms")),
            rounded(None if result["spread_p50"] is None else result["spread_p50"] * 100),
            rounded(result["cpu_s_per_1000"]),
            rounded(result["rss_mib"]),
            *(must_be_zero(result["lost"]), Text(format_number(result["duplicated"]))),
            must_be_zero(result["unexpected"]),
        )
    return table


def markdown_results(results: Sequence[Mapping[str, Any]]) -> str:
    """The same for the documentation, a line for each contender: latency and cost at all rates, and what was lost."""
    rates = sorted({result["rate"] for result in results})
    ends = list(dict.fromkeys((rates[0], rates[-1])))
    columns = [
        "contender",
        *(f"{name}, ms at {rate:,.0f}/s" for rate in rates for name in ("p50", "p99", "due p99")),
        *(f"CPU s/1,000 at {rate:,.0f}/s" for rate in ends),
        "lost",
    ]
    rows = []
    for name in dict.fromkeys(result["mode"] for result in results):
        mine = {result["rate"]: result for result in results if result["mode"] == name}
        at = {rate: mine.get(rate, {}) for rate in rates}
        rows.append([
            f"`{name}`",
            *(rounded(one.get(figure)) for one in at.values() for figure in ("p50_ms", "p99_ms", "due_p99_ms")),
            *(rounded(at[rate].get("cpu_s_per_1000")) for rate in ends),
            format_number(sum(one["lost"] or 0 for one in mine.values())),
        ])  # fmt: skip
    return markdown(columns, rows)


def ratio_lines(ratios: Mapping[str, Mapping[str, float | None]], rate: float) -> list[str]:
    """The ratios in words, a line each."""
    return [
        f"{pair} at {rate:g}/s: p50 {rounded(ratio['p50'])} times, p99 {rounded(ratio['p99'])} times"
        for pair, ratio in ratios.items()
    ]


def rounded(value: float | None) -> str:
    """A measured figure with three significant digits, all of them where it is larger; a dash for what is not known."""
    if value is None:
        return NOT_MEASURED
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
