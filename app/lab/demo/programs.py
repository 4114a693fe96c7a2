"""What the demo runs beside the broker: its settings, the filter and the generator as it wants them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fraud_filter.config import ModeName, Settings
from lab.demo.plan import DemoPlan
from lab.harness import programs
from lab.harness.processes import Child
from lab.harness.workspace import Workspace

#: The generator is told to stop; this is its limit should nobody do so, in seconds beyond the planned ones.
_SPARE_S = 300


def demo_settings(settings: Settings, plan: DemoPlan, address: str) -> Settings:
    """The user's settings on this machine, with more task slots than continuous and real-time mode hold permanently."""
    return programs.on_this_machine(settings, address, slots=max(8, plan.partitions + 2))


def filter_program(
    settings: Settings, mode: ModeName, start: Mapping[int, int], workspace: Workspace, java_home: Path
) -> Child:
    """`fraud-filter run` in `mode`, from the offsets `start` of the input topic, on an empty checkpoint."""
    names = {"checkpoint": f"checkpoint-{mode}", "log": f"filter-{mode}.log"}
    return programs.filter_program(settings, mode, start, workspace, java_home, **names)


def generator_program(settings: Settings, plan: DemoPlan, mode: ModeName, workspace: Workspace) -> Child:
    """`fraud-filter generate` at the planned rate, for longer than the mode will take."""
    return programs.generator_program(
        settings,
        rate=plan.rate,
        seconds=plan.warmup_s + plan.seconds + _SPARE_S,
        flagged_share=plan.flagged_share,
        malformed_share=plan.malformed_share,
        seed=plan.seed,
        log=workspace.logs / f"generator-{mode}.log",
    )
