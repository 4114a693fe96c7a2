"""The table that ends a demo: what each mode promises, how fast it was, and what its audit found."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from fraud_filter.pages.numbers import format_number
from lab.bench.results.table import rounded
from lab.demo.result import ModeResult, figures
from lab.harness.outcome import must_be_zero

#: Below this many columns the guarantee stands under the mode's name instead of beside it.
_WIDE = 94


def result_table(results: Sequence[ModeResult], width: int) -> Table:
    """The results as a table for a terminal of `width` columns; red is what must be zero and is not.

    Latencies are in milliseconds, counts are payments, and a dash is not measured.
    """
    wide = width >= _WIDE
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0) if wide else 0)
    table.add_column("\nmode", no_wrap=True)
    if wide:
        table.add_column("engine\nguarantee", no_wrap=True)
    for heading in ("p50\nms", "p90\nms", "p99\nms", "max\nms"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=5)
    for heading in ("\nflagged", "\nlost", "dupli-\ncated", "unex-\npected", "\nrejected"):
        table.add_column(heading, justify="right", no_wrap=True)
    deliveries = set()
    for result in results:
        one = figures(result)
        deliveries.add(one["delivery_guarantee"])
        mode = Text(result.mode, style="bold red" if result.problem else "bold")
        guarantee = Text(one["engine_guarantee"], style="" if wide else "dim")
        table.add_row(
            *((mode, guarantee) if wide else (Text.assemble(mode, "\n", guarantee),)),
            *(rounded(one[name]) for name in ("p50_ms", "p90_ms", "p99_ms", "max_ms")),
            format_number(one["flagged"]),
            must_be_zero(one["lost"]),
            format_number(one["duplicated"]),
            must_be_zero(one["unexpected"]),
            format_number(one["rejected"]),
        )
    table.caption = f"Delivery into Kafka: {', '.join(sorted(deliveries))} in every mode."
    table.caption_justify = "left"
    return table
