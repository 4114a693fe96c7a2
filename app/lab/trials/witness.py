"""What a user sees of a disturbance: events in the filters' logs, restarts of them and of containers, alerts."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from typing import Self

from docker.errors import DockerException

from fraud_filter.compose.prometheus import Prometheus
from fraud_filter.errors import FraudFilterError
from lab.harness.compose_stack import ComposeStack
from lab.harness.periodic import Periodic

_RESTARTS = "fraud_filter_restarts_total"
_LOST = "fraud_filter_lost_records_total"
_LOOK_S = 2.0
_ANSWER_S = 3.0
#: Disturbances before it are what it tells of: many restarts in a quarter of an hour.
_OF_EARLIER_ONES = {"FraudFilterRestartLoop", "FraudFilterLatencyObjectiveMissed"}
#: Events that tell of trouble, and the field that says which.
_EVENT = re.compile(
    r"event=(taking_over|restarting|unhealthy|waiting_for_slots|data_lost|checkpoint_repaired|java_killed|stop_forced)\b"
    r"(?:.*?\b(reason=[a-z-]+|records=\d+))?"
)
#: The last word of a filter that ends.
_LAST_WORD = re.compile(r"^fraud-filter: (.{1,60})")


class Witness(Periodic):
    """Looks at alerts from entering to leaving; the rest is asked for at the end."""

    def __init__(self, stage: ComposeStack) -> None:
        super().__init__("alerts", _LOOK_S)
        self._stage = stage
        self._prometheus = Prometheus(f"http://127.0.0.1:{stage.stack.value('PROMETHEUS_PORT')}", _ANSWER_S)
        self._alerts: dict[str, None] = {}

    def __enter__(self) -> Self:
        self._since = time.time()
        self._known = self._firing()
        self._before = _started(self._stage)
        self._counted = self._counters()
        return super().__enter__()

    def told(self, notes: Iterable[str] = ()) -> str:
        """All that was seen since the beginning, in one line."""
        stage = self._stage
        after = _started(stage)
        restarted = [service for service, began in after.items() if began != self._before.get(service, began)]
        logs = (stage.container(service).logs(since=self._since) for service in stage.filters)
        counted = self._counters()
        added = (
            grown(name, label, {} if service in restarted else self._counted[service, name, label], figures)
            for (service, name, label), figures in counted.items()
        )
        told = [
            *(f"container {service} restarts" for service in restarted),
            *(event for log in logs for event in notable(log.decode(errors="replace"))),
            *(text for texts in added for text in texts),
            *(f"alert {name}" for name in self._alerts),
            *notes,
        ]
        return "; ".join(dict.fromkeys(told))

    def _counters(self) -> dict[tuple[str, str, str], dict[str, float]]:
        """By filter, metric and label."""
        stage = self._stage
        wanted = ((service, *of) for service in stage.filters for of in ((_RESTARTS, "reason"), (_LOST, "query")))
        return {(service, name, label): stage.metric(name, label, service) for service, name, label in wanted}

    def await_alert(self, name: str, timeout_s: float) -> None:
        """Waits until the alert has fired.

        Raises:
            FraudFilterError: it has not, within `timeout_s` seconds.
        """
        deadline = time.monotonic() + timeout_s
        while name not in self._alerts and name not in self._known:
            if time.monotonic() > deadline:
                raise FraudFilterError(f"the alert {name} did not fire within {timeout_s:g} s")
            time.sleep(_LOOK_S)

    def look(self) -> None:
        """Notes alerts that fire and did not before."""
        for name in sorted(self._firing() - self._known - _OF_EARLIER_ONES):
            self._alerts.setdefault(name)

    def _firing(self) -> set[str]:
        try:
            return {
                each.labels["alertname"]
                for each in self._prometheus.instant('ALERTS{alertstate="firing",alertname!="Watchdog"}')
            }
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


def grown(name: str, label: str, before: Mapping[str, float], after: Mapping[str, float]) -> list[str]:
    """By how much a counter has grown, by the values of a label."""
    added = {value: count - before.get(value, 0) for value, count in sorted(after.items())}
    return [f'{name}{{{label}="{value}"}} +{count:g}' for value, count in added.items() if count > 0]


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
