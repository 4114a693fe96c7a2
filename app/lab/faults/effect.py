"""What putting a fault in came to."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Effect:
    """`since`: the moment from which recovery counts, on the monotonic clock: the fault itself, or an outage's end.

    `grace_s`: what came in so shortly after it may still have been decided by what is about to die, and proves nothing.
    `low`: first retained offset by partition, where payments were removed. `unreported`: payments of those that
    should have been flagged or rejected and that the filter's report of its losses does not name. `notes`: what a user
    saw of it beside logs, metrics and alerts.
    """

    since: float = field(default_factory=time.monotonic)
    grace_s: float = 0.0
    low: Mapping[int, int] = field(default_factory=dict)
    unreported: int = 0
    notes: tuple[str, ...] = ()
