"""The programs that the demo runs beside the broker, as child processes: the filter and the generator."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from fraud_filter.config import ModeName, Settings
from fraud_filter.demo.plan import DemoPlan
from fraud_filter.embedded.processes import Child
from fraud_filter.embedded.programs import environment, verb
from fraud_filter.embedded.workspace import Workspace

#: The generator is told to stop; this is its limit should nobody do so, in seconds beyond the planned ones.
_SPARE_S = 300


def demo_settings(settings: Settings, plan: DemoPlan, address: str) -> Settings:
    """The user's settings, with what the demo decides itself: its own broker, and Spark on this machine.

    Ports are free ones. Continuous and real-time mode hold one task per partition for ever, so Spark gets more task
    slots than that.
    """
    return settings.model_copy(
        update={
            "kafka_bootstrap_servers": address,
            "kafka_security_protocol": "PLAINTEXT",
            "source": "kafka",
            "sink": "kafka",
            "spark_master": f"local[{max(8, plan.partitions + 2)}]",
            "metrics_port": 0,
            "probe_port": 0,
            "generator_port": 0,
        }
    )


def filter_program(
    settings: Settings, mode: ModeName, start: Mapping[int, int], workspace: Workspace, java_home: Path
) -> Child:
    """`fraud-filter run` in `mode`, from the offsets `start` of the input topic, on an empty checkpoint."""
    own = settings.model_copy(
        update={
            "mode": mode,
            "checkpoint": str(workspace.path / f"checkpoint-{mode}"),
            "starting_offsets": json.dumps({settings.input_topic: {str(p): at for p, at in start.items()}}),
        }
    )
    # What Spark keeps on disk goes where it is removed even when Spark has to be killed.
    env = {**environment(own), "JAVA_HOME": str(java_home), "SPARK_LOCAL_DIRS": str(workspace.path / "spark")}
    log = workspace.logs / f"filter-{mode}.log"
    return Child(f"the filter in {mode} mode", verb("run"), log=log, env=env)


def generator_program(settings: Settings, plan: DemoPlan, mode: ModeName, workspace: Workspace) -> Child:
    """`fraud-filter generate` at the planned rate, for longer than the mode will take."""
    arguments = {
        "--rate": f"{plan.rate:.10g}",
        "--seconds": f"{plan.warmup_s + plan.seconds + _SPARE_S:.10g}",
        "--flagged-share": f"{plan.flagged_share:.10g}",
        "--malformed-share": f"{plan.malformed_share:.10g}",
        "--seed": str(plan.seed),
    }
    argv = [*verb("generate"), *(word for pair in arguments.items() for word in pair)]
    log = workspace.logs / f"generator-{mode}.log"
    return Child("the payment generator", argv, log=log, env=environment(settings))
