"""What a terminal and the documentation show of a bench: a line for each start that ended, and tables."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from lab.bench.result import KEPT_SHARE, MOST_P99_MS, RateResult, StartResult
from lab.harness.outcome import must_be_zero
from lab.harness.tables import NOT_MEASURED, format_number, markdown

#: Columns of a result: heading, and what of it is shown.
COLUMNS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], Text | str]]] = {
    "rate": ("rate\n/s", lambda one: format_number(one["rate"])),
    "mean": ("mean\nms", lambda one: rounded(one["due_mean_ms"])),
    "p50": ("p50\nms", lambda one: with_interval(one, "due_p50_ms")),
    "p90": ("p90\nms", lambda one: rounded(one["due_p90_ms"])),
    "p99": ("p99\nms", lambda one: with_interval(one, "due_p99_ms")),
    "p999": ("p99.9\nms", lambda one: rounded(one["due_p999_ms"])),
    "max": ("max\nms", lambda one: rounded(one["due_max_ms"])),
    "append": ("mean from\nappend, ms", lambda one: rounded(one["append_mean_ms"])),
    "cpu": ("CPU s\n/1000", lambda one: rounded(one["cpu_s_per_1000"])),
    "broker": ("broker\nCPU s", lambda one: rounded(one["broker_cpu_s_per_1000"])),
    "ends": ("batch ends\nms", lambda one: _ends(one["batch_ends_ms"])),
    "memory": ("memory\nMiB", lambda one: rounded(one["rss_mib"])),
    "gap": ("without a\ndecision, s", lambda one: rounded(one["gap_s"])),
    "first": ("first deci-\nsion, s", lambda one: rounded(one["first_decision_s"])),
    "flagged": ("\nflagged", lambda one: format_number(one["flagged"])),
    "lost": ("\nlost", lambda one: must_be_zero(one["lost"])),
    "duplicated": ("dupli-\ncated", lambda one: format_number(one["duplicated"])),
    "unexpected": ("unex-\npected", lambda one: must_be_zero(one["unexpected"])),
    "rejected": ("\nrejected", lambda one: format_number(one["rejected"])),
}
BENCH = (
    *("rate", "p50", "p90", "p99", "p999", "max", "ends", "mean", "append", "cpu", "broker", "memory"),
    *("lost", "duplicated", "unexpected"),
)
#: Of contenders that were killed.
KILLED = ("rate", "gap", "max", "lost", "duplicated", "unexpected")
#: What rules of a family look at.
FAMILY_WORDS = {"rules": "single payments", "velocity": "velocity", "model": "the model's score"}
#: As wide as 80 characters.
DEMO = ("p50", "p90", "p99", "max", "flagged", "lost", "duplicated", "unexpected", "rejected")


def result_table(results: Sequence[Mapping[str, Any]], columns: Sequence[str] = BENCH) -> Table:
    """The `results` of a report, red what must be zero and is not; latencies are from the due time on."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("\ncontender", overflow="fold")
    for name in columns:
        table.add_column(COLUMNS[name][0], justify="right", no_wrap=True)
    for result in results:
        contender = Text(result["mode"], style="bold" if result["keeps_up"] else "bold red")
        table.add_row(contender, *(COLUMNS[name][1](result) for name in columns))
    return table


def describe_start(start: StartResult) -> list[str]:
    """A line for each rate that was measured, and one for what ended the start before its time."""
    head = f"round {start.round}, {start.contender}"
    lines = [
        f"{head}, {rate.rate:g}/s: p50 {rounded(rate.due.get('p50_ms'))} ms, "
        f"p99 {rounded(rate.due.get('p99_ms'))} ms, {rate.audit}{_shortfall(rate)}"
        for rate in start.rates
    ]
    if start.is_disturbed:
        lines.append(f"{head}: others took {start.stolen_share:.0%} of the processor time, so this round says little")
    return [*lines, f"{head}: {start.error}"] if start.error else lines


def _shortfall(rate: RateResult) -> str:
    if rate.is_behind:
        if (rate.decided_share or 0) >= KEPT_SHARE:
            return f"; behind: p99 is above {MOST_P99_MS:,.0f} ms"
        return (
            f"; behind: {rate.decided_share:.1%} of what was due was decided meanwhile, {rate.lag} came after the end"
        )
    if rate.keeps_up or rate.kept_rate is None:
        return ""
    return f"; only {rounded(rate.kept_rate)} of {rate.rate:g} payments/s came"


def detection_table(results: Sequence[Mapping[str, Any]]) -> Table | None:
    """What the rules of each contender found of the labelled fraud; None where nothing was labelled."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("mode", no_wrap=True)
    for heading in ("rules over", "precision", "recall"):
        table.add_column(heading, justify="left" if heading == "rules over" else "right")
    for result in results:
        for family, found in (result["detection"] or {}).items():
            parts = ("-" if part is None else f"{part:.0%}" for part in (found["precision"], found["recall"]))
            table.add_row(result["mode"], FAMILY_WORDS[family], *parts)
    table.caption = "Labelled fraud: single payments against what the card did before."
    table.caption_justify = "left"
    return table if table.row_count else None


def markdown_results(data: Mapping[str, Any]) -> str:
    """For the documentation: latency, processor time (the contender's + the broker's), what was lost, and verdicts."""
    results = data["results"]
    rates = sorted({result["rate"] for result in results})
    ends = list(dict.fromkeys((rates[0], rates[-1])))
    columns = [
        "contender",
        *(f"due {name}, ms at {rate:,.0f}/s" for rate in rates for name in ("p50", "p99")),
        *(f"CPU s/1,000 at {rate:,.0f}/s" for rate in ends),
        "lost",
    ]
    rows = []
    for name in dict.fromkeys(result["mode"] for result in results):
        mine = {result["rate"]: result for result in results if result["mode"] == name}
        at = {rate: mine.get(rate, {}) for rate in rates}
        lost = [one["lost"] for one in mine.values() if one["lost"] is not None]
        rows.append([
            f"`{name}`",
            *(_latency(one, figure) for one in at.values() for figure in ("due_p50_ms", "due_p99_ms")),
            *(_cost(at[rate]) for rate in ends),
            format_number(sum(lost) if lost else None),
        ])  # fmt: skip
    lines = [*broker_lines(data.get("broker_alone")), *verdict_lines(data["compared"], "`")]
    return "\n".join([markdown(columns, rows), "", *(f"- {line}" for line in lines)])


def _latency(result: Mapping[str, Any], name: str) -> str:
    """A figure with its interval; of a contender that fell behind it would be the length of a queue."""
    return "behind" if result and not result["keeps_up"] else with_interval(result, name)


def _cost(result: Mapping[str, Any]) -> str:
    return " + ".join(rounded(result.get(name)) for name in ("cpu_s_per_1000", "broker_cpu_s_per_1000"))


def _ends(waits_ms: Sequence[float]) -> str:
    if not waits_ms:
        return NOT_MEASURED
    return f"{len(waits_ms)}: {rounded(statistics.median(waits_ms))}, {rounded(max(waits_ms))}"


def broker_lines(alone: Mapping[str, float] | None) -> list[str]:
    """What the broker alone takes, a sentence; none where it was not measured."""
    if not alone:
        return []
    whole = ", ".join(f"{alone[name]:g}" for name in ("p50_ms", "p99_ms", "p999_ms"))
    return [
        f"The broker alone (EndToEndLatency: a record there and back, then the next): mean {rounded(alone['mean_ms'])} "
        f"ms; p50, p99 and p99.9 cut down to whole ms: {whole}."
    ]


def markdown_kills(data: Mapping[str, Any]) -> str:
    """What a kill did to each contender at each rate, for the documentation."""
    columns = ["contender", "payments/s", "s without a decision", "longest wait, s", "decided twice", "lost"]
    rows = [
        [
            f"`{one['mode']}`",
            format_number(one["rate"]),
            rounded(one["gap_s"]),
            rounded(one["due_max_ms"] and one["due_max_ms"] / 1000),
            *(format_number(one[count]) for count in ("duplicated", "lost")),
        ]
        for one in data["results"]
    ]
    return markdown(columns, rows)


def verdict_lines(compared: Sequence[Mapping[str, Any]], quote: str = "") -> list[str]:
    """What may be said of two contenders, a sentence each; `quote` stands around their names."""
    titles = {"due_p50_ms": "p50", "due_p99_ms": "p99", "cpu_s_per_1000": "processor time"}
    lines = []
    for one in compared:
        parts = (f"{title} {_ratio_words(one[name])}" for name, title in titles.items() if one[name])
        first, second = (f"{quote}{one[name]}{quote}" for name in ("first", "second"))
        lines.append(f"At {one['rate']:,g}/s {first} against {second}: {'; '.join(parts)}.")
    return lines


def _ratio_words(one: Mapping[str, Any]) -> str:
    return f"{rounded(one['ratio'])} times{_between(one['low'], one['high'])}, {one['verdict']}"


def with_interval(result: Mapping[str, Any], name: str) -> str:
    """A figure of a result, and in brackets its interval over the rounds, where it has one."""
    low, high = result.get("intervals", {}).get(name) or (None, None)
    return rounded(result.get(name)) + _between(low, high)


def _between(low: float | None, high: float | None) -> str:
    return "" if low is None else f" ({rounded(low)} to {rounded(high)})"


def rounded(value: float | None) -> str:
    """A measured figure with three significant digits, all of them where it is larger; a dash for what is not known."""
    if value is None:
        return NOT_MEASURED
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
