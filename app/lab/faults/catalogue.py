"""Every fault, as data: its name, what happens, and what puts it in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fraud_filter.errors import UsageError
from lab.faults.checkpoints import corrupt_offsets, delete_commit, fill_disk
from lab.faults.effect import Effect
from lab.faults.inputs import add_partition, jump_clock, remove_unread
from lab.faults.kills import kill_containers, kill_java
from lab.faults.outages import cut_network, pause_broker, stop_broker
from lab.harness.compose_stack import ACTIVE, ACTIVE_WORKER, MASTER, WORKER, ComposeStack

#: What the stack holds to after the kill of a driver or of an executor, in seconds.
_LIMIT_S = 30.0


@dataclass(frozen=True)
class Fault:
    """`inject` puts it in and takes it out again.

    `limit_s`: most seconds to fresh decisions; None where nothing is promised. `repeatable`: it leaves the stack as it
    was and loses nothing by design, so that it may come again and again. `standby`: it is put in with a standby, too;
    the others are about what a filter finds when it starts.
    """

    name: str
    what: str
    inject: Callable[[ComposeStack], Effect]
    limit_s: float | None = None
    repeatable: bool = True
    standby: bool = False


FAULTS = (
    Fault(
        "driver-kill",
        "kill -9 of Spark's Java in the filter's container",
        kill_java(ACTIVE, "SparkSubmit"),
        _LIMIT_S,
        standby=True,
    ),
    Fault("filter-kill", "kill -9 of every process of the filter's container", kill_containers(ACTIVE), standby=True),
    Fault(
        "java-hang",
        "Spark's Java in the filter's container hangs (SIGSTOP)",
        kill_java(ACTIVE, "SparkSubmit", "STOP"),
        standby=True,
    ),
    Fault(
        "executor-kill",
        "kill -9 of an executor",
        kill_java(ACTIVE_WORKER, "CoarseGrainedExecutorBackend"),
        _LIMIT_S,
        standby=True,
    ),
    Fault("worker-kill", "kill -9 of the worker and its executor", kill_containers(ACTIVE_WORKER), standby=True),
    Fault("master-kill", "kill -9 of the Spark master", kill_containers(MASTER), standby=True),
    Fault("cluster-kill", "kill -9 of master, worker and executor at once", kill_containers(MASTER, WORKER)),
    Fault("broker-kill", "kill -9 of the broker, back after 20 s", stop_broker, standby=True),
    Fault("broker-pause", "the broker hangs for 20 s", pause_broker, standby=True),
    Fault("network-cut", "no network between worker and broker for 20 s", cut_network),
    Fault("disk-full", "the checkpoint's disk is full for 20 s", fill_disk),
    Fault("offsets-corrupt", "filter killed, newest entry of the offset log overwritten", corrupt_offsets),
    Fault("commit-deleted", "filter killed, newest entry of the commit log deleted", delete_commit),
    Fault("clock-jump", "the generator's clock jumps a day ahead, then an hour back", jump_clock),
    Fault("partitions-added", "the input topic gets one more partition", add_partition, repeatable=False),
    Fault("retention", "filter killed, unread payments removed from the topic", remove_unread, repeatable=False),
)


def choose(names: str, faults: tuple[Fault, ...] = FAULTS) -> list[Fault]:
    """The faults in a list such as "driver-kill,broker-kill", in the catalogue's order; all when it is empty.

    Raises:
        UsageError: there is no such fault.
    """
    known = [fault.name for fault in faults]
    wanted = [name.strip() for name in names.split(",")] if names else known
    for name in wanted:
        if name not in known:
            raise UsageError(f"argument --only: {name!r} is not accepted: give names of {', '.join(known)}")
    return [fault for fault in faults if fault.name in wanted]
