"""What a user sees of a disturbance: events in the filters' logs, restarts of containers, alerts."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable

from docker.errors import DockerException

from fraud_filter.compose.status import find_prometheus
from fraud_filter.errors import FraudFilterError
from lab.harness.compose_stack import ComposeStack

_ANSWER_S = 3.0
_FIRING = 'ALERTS{alertstate="firing",alertname!="Watchdog"}'
#: Disturbances before it are what it tells of: many restarts in a quarter of an hour.
_OF_EARLIER_ONES = {"FraudFilterRestartLoop", "FraudFilterLatencyObjectiveMissed"}
#: Events that tell of trouble, and the field that says which.
_EVENT = re.compile(
    r"event=(taking_over|restarting|unhealthy|waiting_for_slots|data_lost|checkpoint_repaired|java_killed|stop_forced)\b"
    r"(?:.*?\b(reason=[a-z-]+|records=\d+))?"
)
#: The last word of a filter that ends.
_LAST_WORD = re.compile(r"^fraud-filter: (.{1,60})")


class Witness:
    """Tells what came after it was made."""

    def __init__(self, stage: ComposeStack) -> None:
        self._stage = stage
        self._prometheus = find_prometheus(stage.stack, _ANSWER_S)
        self._since = time.time()
        self._known = self._alerts(_FIRING)
        self._before = _started(stage)

    def told(self, notes: Iterable[str] = ()) -> str:
        """All that was seen since then, in one line, with `notes` at its end."""
        stage = self._stage
        after = _started(stage)
        restarted = [service for service, began in after.items() if began != self._before.get(service, began)]
        logs = (stage.container(service).logs(since=self._since) for service in stage.filters)
        fired = self._alerts(f"count_over_time({_FIRING}[{time.time() - self._since:.0f}s])")
        told = [
            *(f"container {service} restarts" for service in restarted),
            *(event for log in logs for event in notable(log.decode(errors="replace"))),
            *(f"alert {name}" for name in sorted(fired - self._known - _OF_EARLIER_ONES)),
            *notes,
        ]
        return "; ".join(dict.fromkeys(told))

    def _alerts(self, query: str) -> set[str]:
        """Names of the alerts that a query finds; none where Prometheus does not answer."""
        try:
            return {each.labels["alertname"] for each in self._prometheus.instant(query)}
        except FraudFilterError:
            return set()


def notable(log: str) -> list[str]:
    """The events of trouble in a log of the filter's, each once, in their order; and the words that it ended with."""
    found: dict[str, None] = {}
    for line in log.splitlines():
        event, word = _EVENT.search(line), _LAST_WORD.search(line)
        if event:
            found.setdefault(f"event={event[1]}" + (f" {event[2]}" if event[2] else ""))
        elif word:
            found.setdefault(f"filter ends: {word[1]}…")
    return list(found)


def _started(stage: ComposeStack) -> dict[str, str]:
    """When each container of the stack was started, by service."""
    try:
        return {
            state.service: state.container.attrs["State"]["StartedAt"]
            for state in stage.stack.states()
            if not state.one_shot
        }
    except DockerException:
        return {}
