"""An executor that hangs: the stall alert fires within a minute, and ends when the executor goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from deployed import Deployed
from waiting import wait_until

#: Signals every executor in a worker's container; the pattern does not find this very script.
_SIGNAL = """
found=1
for process in /proc/[0-9]*; do
    if grep -qs 'Coarse[G]rainedExecutorBackend' "$process/cmdline"; then
        kill "-$1" "${process#/proc/}" && found=0
    fi
done
exit $found
"""
_ALERT_S = 60
#: Commits of half a minute, by those of the last ten: from two on the alert knows a stall from a pause.
_COMMITS = "30 * sum(rate(fraud_filter_commits_total[10m])) > 3"


def signal_executors(stack: Deployed, name: str) -> None:
    workers = [state.container for state in stack.open().states() if state.service == "spark-worker"]
    codes = [worker.exec_run(["sh", "-c", _SIGNAL, "sh", name]).exit_code for worker in workers]
    assert 0 in codes, f"no executor took {name}: {codes}"


def stalled(stack: Deployed) -> bool:
    alerts = stack.json("PROMETHEUS_PORT", "/api/v1/alerts")["data"]["alerts"]
    return any(a["labels"]["alertname"] == "FraudFilterStalled" and a["state"] == "firing" for a in alerts)


@pytest.fixture
def hanging(stack: Deployed) -> Iterator[float]:
    """Executors that hang for the time of the test; gives the moment since when, by the monotonic clock."""
    asked = f"/api/v1/query?query={quote(_COMMITS)}"
    wait_until("commits", lambda: stack.json("PROMETHEUS_PORT", asked)["data"]["result"], timeout_s=400)
    wait_until("no stall", lambda: not stalled(stack), timeout_s=120)
    signal_executors(stack, "STOP")
    yield time.monotonic()
    signal_executors(stack, "CONT")


@pytest.mark.exhaustive  # the alert's rule has tests, and so has the filter that hangs
def test_a_hanging_executor_is_told_within_a_minute_and_so_is_its_return(stack: Deployed, hanging: float) -> None:
    wait_until("the stall alert fires", lambda: stalled(stack), timeout_s=_ALERT_S)
    assert time.monotonic() - hanging <= _ALERT_S
    signal_executors(stack, "CONT")
    wait_until("the stall alert ends", lambda: not stalled(stack), timeout_s=_ALERT_S)
