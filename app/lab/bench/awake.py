"""Keeps the cores from sleeping while the bench measures."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from fraud_filter.errors import UsageError
from lab.harness.processes import Child
from lab.harness.workspace import Workspace

#: On the core of that number, whenever nothing else wants it (`SCHED_IDLE`, sched(7)).
_BUSY = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
while True:
    pass
"""


@contextmanager
def cores_awake(workspace: Workspace) -> Iterator[None]:
    """One busy process for each core that we may use, which gives way to any other at once.

    A core with nothing to do sleeps, and to wake it takes time: a few microseconds on bare metal, a good deal more
    where that is a call of the hypervisor. At 100 payments/s each of a payment's ways between threads begins so. What
    `idle=poll` does for a machine (Linux, admin-guide/pm/cpuidle), this does for a while and without a restart.

    Raises:
        UsageError: this is not Linux.
    """
    if sys.platform != "linux":
        raise UsageError("argument --awake: only Linux' cores can be kept from sleeping: leave it out")
    with ExitStack() as stack:
        for core in sorted(os.sched_getaffinity(0)):
            argv = [sys.executable, "-c", _BUSY, str(core)]
            stack.enter_context(Child(f"what keeps core {core} awake", argv, log=workspace.logs / "awake.log"))
        yield
