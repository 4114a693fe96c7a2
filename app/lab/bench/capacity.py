"""What a rate needs in cores, partitions, workers and brokers, from the unit costs that a bench has measured.

A model, not a measurement: docs/scaling.md says what it assumes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fraud_filter.errors import UsageError
from lab.bench.names import MODE_NAMES

#: What every result of a report has had since the first one.
_NEEDED = {"mode", "rate", "keeps_up", "cpu_s_per_1000"}


@dataclass(frozen=True)
class Machines:
    """What there is to run on. `utilisation`: the share of a core that may be used, so that a peak finds room."""

    worker_cores: int = 16
    broker_cores: int = 16
    replication: int = 3
    utilisation: float = 0.5


@dataclass(frozen=True)
class Need:
    """What one mode needs. `measured_at`: the rate of the unit costs, in processor seconds per 1,000 payments."""

    mode: str
    measured_at: float
    filter_cpu_s: float
    broker_cpu_s: float
    cores: int
    partitions: int
    workers: int
    brokers: int


def load_report(path: Path) -> dict[str, Any]:
    """A `bench-report.json`.

    Raises:
        UsageError: the file can't be read, or is none.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} can't be read: {error}; give a bench-report.json of `lab bench`") from None
    if not isinstance(data, dict) or not _is_report(data):
        raise UsageError(f"{path} is no report of a bench: give a bench-report.json of `lab bench`")
    return data


def _is_report(data: Mapping[str, Any]) -> bool:
    results, ratios = data.get("results"), data.get("ratios")
    return (
        isinstance(results, list)
        and all(isinstance(one, dict) and one.keys() >= _NEEDED for one in results)
        and isinstance(ratios, dict)
        and all(isinstance(one, dict) for one in ratios.values())
    )


def estimate(results: Sequence[Mapping[str, Any]], rate: float, machines: Machines) -> list[Need]:
    """What each mode needs for `rate` payments per second, from the `results` of a bench report.

    The unit costs are those of the highest rate that the mode kept up with, where a payment costs least.

    Raises:
        UsageError: no mode has both unit costs at any rate that it kept up with.
    """
    needs = [
        _estimate(max(known, key=lambda one: float(one["rate"])), rate, machines)
        for mode in MODE_NAMES
        if (known := [one for one in results if one["mode"] == mode and _is_known(one)])
    ]
    if not needs:
        raise UsageError("the report has no mode with known costs: give a bench-report.json of `lab bench`")
    return needs


def _is_known(one: Mapping[str, Any]) -> bool:
    return bool(one["keeps_up"] and one["cpu_s_per_1000"] and one.get("broker_cpu_s_per_1000"))


def _estimate(one: Mapping[str, Any], rate: float, machines: Machines) -> Need:
    filter_cpu_s, broker_cpu_s = one["cpu_s_per_1000"], one["broker_cpu_s_per_1000"]
    cores = math.ceil(rate * filter_cpu_s / 1000 / machines.utilisation)
    # Each copy costs its broker no more than the leader's work does.
    broker_cores = rate * broker_cpu_s / 1000 * machines.replication / machines.utilisation
    return Need(
        mode=one["mode"],
        measured_at=one["rate"],
        filter_cpu_s=filter_cpu_s,
        broker_cpu_s=broker_cpu_s,
        cores=cores,
        partitions=cores,  # a task is one thread: it gets what one core may give
        workers=math.ceil(cores / machines.worker_cores),
        brokers=max(math.ceil(broker_cores / machines.broker_cores), machines.replication),
    )
