"""The stack's state as one screen of text, or as one value for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from fraud_filter.compose.readings import Readings
from fraud_filter.compose.stack import ServiceState

_NONE = "-"


def screen(states: list[ServiceState], readings: Readings, addresses: list[tuple[str, str]]) -> RenderableType:
    """Services, figures and addresses, one below the other."""
    services = _grid()
    for state in states:
        services.add_row(state.service, f"[{'green' if state.ready else 'red'}]{state.word}[/]")
    figures = _grid()
    for name, value in figure_rows(readings):
        figures.add_row(name, value)
    places = _grid()
    for row in addresses:
        places.add_row(*row)
    return Group(services, "", figures, "", places)


def as_dict(states: list[ServiceState], readings: Readings, addresses: list[tuple[str, str]]) -> dict[str, Any]:
    """The same for JSON: whether all services are ready, each one's state, metrics in base units, addresses by name.

    A metric that is not known is None.
    """
    return {
        "ready": bool(states) and all(state.ready for state in states),
        "services": [{"service": state.service, "ready": state.ready, "state": state.word} for state in states],
        "metrics": asdict(readings),
        "addresses": {name: address.partition("  ")[0] for name, address in addresses},
    }


def figure_rows(readings: Readings) -> list[tuple[str, str]]:
    """Name and value with its unit; a dash where there is no value. What is held back is there when something is."""

    def shown(value: float | None, unit: str, digits: int = 0, factor: float = 1) -> str:
        return _NONE if value is None else f"{value * factor:.{digits}f} {unit}"

    latency = f"p50 {shown(readings.p50_s, 'ms', 1, 1000)}, p99 {shown(readings.p99_s, 'ms', 1, 1000)}"
    held = [("held back", f"{shown(readings.held, 'records')} of an open transaction")] if readings.held else []
    return [
        ("mode", readings.mode or _NONE),
        ("active, standby", f"{readings.active or _NONE}, {readings.standby or _NONE}"),
        ("records in", shown(readings.rate_in, "/s", 1)),
        ("flagged", shown(readings.flagged_rate, "/s", 1)),
        ("latency, last minute", latency),
        ("lag", shown(readings.lag, "records")),
        *held,
        ("last commit", shown(readings.commit_age_s, "s ago")),
    ]


def _grid() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=20, no_wrap=True)
    table.add_column(overflow="fold")
    return table
