"""The states of `fraud-filter run`, and what leads from one to the next. `run` has the work of each state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["launching", "checking", "standing-by", "starting", "running", "handing-over", "backing-off", "ended"]
Event = Literal[
    "connected", "checked", "lock-is-held", "lock-taken", "started", "query-restarts", "handover-agreed",
    "queued-again", "handed-over", "failed", "waited", "stop-requested", "refused",
]  # fmt: skip


@dataclass(frozen=True)
class Transition:
    """In the state `source` (in `any`: in each of them) the `event` leads to `target`; `meaning` is for the docs."""

    source: State | Literal["any"]
    event: Event
    target: State
    meaning: str


TRANSITIONS = (
    Transition("launching", "connected", "checking", "Java runs, Spark's session is open, executors have registered"),
    Transition("checking", "checked", "starting", "rules, task slots and the executors' disk are in order"),
    Transition("checking", "lock-is-held", "standing-by", "this is a standby, which waits for the checkpoint's lock"),
    Transition("standing-by", "lock-taken", "starting", "the active filter has ended, or has handed over"),
    Transition("starting", "started", "running", "the query runs from its start position"),
    Transition(
        "running", "query-restarts", "checking",
        "only the query has to start again: partitions were added, or task slots were lost or are back",
    ),
    Transition("running", "handover-agreed", "handing-over", "a warm standby has asked this filter to end"),
    Transition("handing-over", "handed-over", "ended", "the lock is free for the standby; exit code 0"),
    Transition("handing-over", "queued-again", "checking", "the same, for a filter that now waits as a standby"),
    Transition("any", "failed", "backing-off", "for a reason that a new start may cure, such as a Java that died"),
    Transition("backing-off", "waited", "launching", "Java has ended, and the back-off is over"),
    Transition("any", "stop-requested", "ended", "SIGTERM or SIGINT; exit code 0"),
    Transition("any", "refused", "ended", "for a reason that no new start cures, or after too many; exit codes 1 to 4"),
)  # fmt: skip
_TARGETS = {(each.source, each.event): each.target for each in TRANSITIONS}


def next_state(state: State, event: Event) -> State:
    """Where `event` leads from `state`.

    Raises:
        KeyError: it leads nowhere; a defect of this program.
    """
    return _TARGETS.get((state, event)) or _TARGETS["any", event]
