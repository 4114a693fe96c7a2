"""What an experiment came to: medians of the rounds, and what each change makes of the mode as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from lab.bench.results.result import RateResult
from lab.bench.results.summary import median_of_known, quotient
from lab.bench.results.table import rounded
from lab.experiment.change import BASE
from lab.experiment.run import Trial
from lab.harness.outcome import Audited

_HEADINGS = (
    "rate, /s", "p50, ms", "ratio", "p99, ms", "ratio", "CPU s/1,000", "ratio", "start, s", "MiB", "lost", "unexpected",
)  # fmt: skip
#: By change, round and rate.
_Measured = dict[tuple[str, int, float], RateResult]
_FIGURES: dict[str, Callable[[RateResult], float | None]] = {
    "p50_ms": lambda one: one.append.get("p50_ms"),
    "p99_ms": lambda one: one.append.get("p99_ms"),
    "cpu_s_per_1000": lambda one: one.cpu_s_per_1000,
}


def summarise(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """For each change and rate the medians of its rounds, and `…_ratio`: to the mode as it is.

    A ratio is the median of the ratios within the rounds, so that what slows the machine for longer falls out. None
    is what is not known. `scrapes` is how often the metrics were read, and `repeated` how often a start was done again
    because others took the processor, over all rounds; `stolen_share` is what they took of it in those that count.
    """
    measured = {(t.change.name, t.start.round, one.rate): one for t in trials for one in t.start.rates}
    rates = sorted({rate for _, _, rate in measured})
    return [
        {
            "change": name,
            "rate": rate,
            **_medians(_rounds(measured, name, rate)),
            **_ratios(measured, name, rate),
            **asdict(Audited.total(one.audit for one in _rounds(measured, name, rate))),
            "partitions": max(t.partitions for t in trials if t.change.name == name),
            "first_decision_s": median_of_known(t.start.first_decision_s for t in trials if t.change.name == name),
            "memory_mib": median_of_known(t.start.uss_mib for t in trials if t.change.name == name),
            "scrapes": sum(t.scrapes for t in trials if t.change.name == name),
            "repeated": sum(t.start.repeated for t in trials if t.change.name == name),
            "errors": [t.start.error for t in trials if t.change.name == name and t.start.error],
        }
        for name in dict.fromkeys(t.change.name for t in sorted(trials, key=lambda t: t.change.name != BASE))
        for rate in rates or [0]
    ]


def result_table(results: Sequence[dict[str, Any]]) -> Table:
    """A line for each change and rate."""
    table = Table("change", *_HEADINGS, "")
    for one in results:
        figures = (one[name] for figure in _FIGURES for name in (figure, f"{figure}_ratio"))
        shown = (
            one["rate"],
            *figures,
            *(one[name] for name in ("first_decision_s", "memory_mib", "lost", "unexpected")),
        )
        # Texts: changes and errors have brackets, which are marks to rich otherwise.
        table.add_row(Text(one["change"]), *map(rounded, shown), Text("; ".join(one["errors"])))
    return table


def _rounds(measured: _Measured, name: str, rate: float) -> list[RateResult]:
    return [one for (which, _, at), one in measured.items() if (which, at) == (name, rate)]


def _medians(rounds: Sequence[RateResult]) -> dict[str, float | None]:
    figures = {**_FIGURES, "stolen_share": lambda one: one.stolen_share}
    return {name: median_of_known(map(figure, rounds)) for name, figure in figures.items()}


def _ratios(measured: _Measured, name: str, rate: float) -> dict[str, float | None]:
    pairs = [
        (one, measured[BASE, number, rate])
        for (which, number, at), one in measured.items()
        if (which, at) == (name, rate) and (BASE, number, rate) in measured
    ]
    return {
        f"{figure}_ratio": median_of_known(quotient(read(one), read(base)) for one, base in pairs)
        for figure, read in _FIGURES.items()
    }
