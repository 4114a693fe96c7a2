"""A Compose stack of its own under load: made, asked and taken down. `overlay.yml` says where it differs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import requests
from docker.models.containers import Container
from prometheus_client.parser import text_string_to_metric_families
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from fraud_filter.compose import images
from fraud_filter.compose.stack import Stack
from fraud_filter.compose.waiting import start, unready
from fraud_filter.config import ModeName, Settings, load
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.offsets import find_input_bounds, open_consumer
from fraud_filter.metrics import local_http
from fraud_filter.probe.probe import Probe
from lab.harness.own_env import make_own_env
from lab.harness.processes import stop_signals
from lab.harness.workspace import Workspace

FILTER, WORKER, MASTER, BROKER, KEEPER = (
    *("fraud-filter", "spark-worker", "spark-master", "kafka", "checkpoint-keeper"),
)
OVERLAY = Path(__file__).with_name("overlay.yml")
PROJECT = "fraud-filter-faults"

#: Beside the defaults: task slots for partitions that are added, and no Grafana, whose image alone has a registry.
_CHANGES = {"SPARK_WORKER_CORES": "8", "COMPOSE_PROFILES": ""}
_UP_S = 600.0
_DOWN_S = 600.0
_ANSWER_S = 5.0
_BROKER_BACK_S = 120
_TICK_S = 0.1

Say = Callable[[str], None]
Offsets = dict[int, int]


@dataclass
class Stage:
    """The stack, a probe on its output topics, and how far things are.

    `keep_logs`, with a word for their names, keeps those of the containers as they are now.
    """

    stack: Stack
    settings: Settings
    probe: Probe
    say: Say
    keep_logs: Callable[[str], None] = lambda _: None

    def container(self, service: str) -> Container:
        """The service's container as it is now, the first of several.

        Raises:
            FraudFilterError: there is none.
        """
        for state in self.stack.states():
            if state.service == service:
                return state.container
        raise FraudFilterError(f"the stack {self.stack.name} has no container of {service}")

    def execute(self, service: str, script: str, *words: str) -> str:
        """Runs a shell script, with `words` as its arguments, in the service's container; returns what it prints.

        Raises:
            FraudFilterError: it failed.
        """
        code, output = self.container(service).exec_run(["sh", "-c", script, "sh", *words])
        text = str(output.decode(errors="replace")).strip()
        if code:
            raise FraudFilterError(f"a command in the container of {service} failed with code {code}: {text}")
        return text

    @retry(retry=retry_if_exception_type(FraudFilterError), stop=stop_after_delay(_BROKER_BACK_S), wait=wait_fixed(0.2),
           reraise=True)  # fmt: skip
    def ends(self) -> Offsets:
        """The end of each partition of the input topic, as soon as a broker answers.

        Raises:
            FraudFilterError: none does.
        """
        with open_consumer(self.settings) as consumer:
            return {number: end for number, (_, end) in find_input_bounds(consumer, self.settings).items()}

    def metric(self, name: str, label: str) -> dict[str, float]:
        """A metric of the filter's, by one of its labels; empty while the filter does not answer."""
        try:
            page = local_http.get(f"http://127.0.0.1:{self.stack.value('FRAUD_METRICS_PORT')}/metrics", _ANSWER_S)
            page.raise_for_status()
        except requests.RequestException:
            return {}
        families = text_string_to_metric_families(page.text)
        samples = (sample for family in families for sample in family.samples if sample.name == name)
        return {sample.labels.get(label, ""): sample.value for sample in samples}

    def committed(self) -> Offsets:
        """The newest commit that the filter tells of; partitions without one are left out."""
        return {
            int(number): int(end) for number, end in self.metric("fraud_filter_committed_offset", "partition").items()
        }

    def await_decisions(self, offsets: Offsets, timeout_s: float) -> None:
        """Waits until a decision about a payment at or after `offsets` has come out of each partition.

        Raises:
            FraudFilterError: it has not, within `timeout_s` seconds.
        """
        deadline = time.monotonic() + timeout_s
        while not self.probe.has_passed(offsets):
            if time.monotonic() > deadline:
                newest = self.probe.snapshot().source_offsets
                raise FraudFilterError(
                    f"no fresh decisions within {timeout_s:g} s: awaited were offsets {offsets}, newest are {newest}"
                )
            time.sleep(_TICK_S)

    def await_ready(self, timeout_s: float) -> None:
        """Waits until every service is healthy.

        Raises:
            FraudFilterError: one is not, within `timeout_s` seconds.
        """
        services, deadline = self.stack.services(), time.monotonic() + timeout_s
        while missing := unready(self.stack.states(), services):
            if time.monotonic() > deadline:
                raise FraudFilterError(f"not healthy within {timeout_s:g} s: {', '.join(missing)}")
            time.sleep(1)


@contextmanager
def open_stage(mode: ModeName, rate: float, say: Say, **changes: str) -> Iterator[Stage]:
    """Brings up the stack in `mode`, with `rate` payments per second; takes it down with its data at the end.

    Args:
        changes: settings of its environment file.

    Raises:
        FraudFilterError: the stack could not be brought up, or what is done with it failed; the logs are kept then.
        UsageError: no Docker Engine answers.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP.
    """
    with stop_signals(), Workspace(f"{PROJECT}-") as workspace:
        own = {"FRAUD_MODE": mode, "GENERATOR_RATE": f"{rate:.10g}", **_CHANGES, **changes}
        stack = Stack.open(make_own_env(workspace.path / ".env", PROJECT, **own), overlays=(OVERLAY,))
        try:
            images.prepare(stack)
            say(f"starting {stack.name} in {mode} mode")
            start(stack, ["--remove-orphans"], stack.services(), _UP_S)
            settings = load(env_file=stack.env)
            with Probe(settings) as probe:
                yield Stage(stack, settings, probe, say, partial(_keep_logs, stack, workspace))
        except FraudFilterError:
            _keep_logs(stack, workspace, "end")
            raise
        finally:
            stack.compose("down", "--volumes", "--remove-orphans", timeout_s=_DOWN_S)


def _keep_logs(stack: Stack, workspace: Workspace, name: str) -> None:
    workspace.keep_logs()
    for state in stack.states():
        log = workspace.logs / f"{name}-{state.service}.log"
        log.write_bytes(state.container.logs(timestamps=True))
