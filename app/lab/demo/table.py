"""The table that ends a demo: what each mode promises, how fast it was, and what its audit found."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from fraud_filter.pages.numbers import format_number
from lab.demo.result import ModeResult
from lab.demo.wording import describe_problem
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
    for result in results:
        mode = Text(result.mode, style="bold red" if describe_problem(result) else "bold")
        guarantee = Text(result.engine_guarantee, style="" if wide else "dim")
        table.add_row(
            *((mode, guarantee) if wide else (Text.assemble(mode, "\n", guarantee),)),
            *map(format_number, (result.p50_ms, result.p90_ms, result.p99_ms, result.max_ms)),
            format_number(result.flagged),
            must_be_zero(result.audit.lost),
            format_number(result.audit.duplicated),
            must_be_zero(result.audit.unexpected),
            format_number(result.rejected),
        )
    deliveries = sorted({result.delivery_guarantee for result in results})
    table.caption = f"Delivery into Kafka: {', '.join(deliveries)} in every mode."
    table.caption_justify = "left"
    return table
