"""A Compose stack of its own under load: made, asked and taken down. `compose_overlay.yml` says where it differs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from docker.models.containers import Container
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from fraud_filter.compose import env_file, images, rollout
from fraud_filter.compose.stack import FILTER, STANDBY, Stack, execute, start, unready
from fraud_filter.config import ModeName, Settings, load
from fraud_filter.errors import FraudFilterError
from fraud_filter.probe.probe import Probe
from lab.harness.drain import open_input
from lab.harness.java import Say
from lab.harness.processes import free_ports, stop_signals
from lab.harness.waiting import wait_until
from lab.harness.workspace import Workspace

WORKER, STANDBY_WORKER, MASTER, BROKER, KEEPER = (
    *("spark-worker", "standby-worker", "spark-master", "kafka", "checkpoint-keeper"),
)
#: The service of the filter that works on the checkpoint, and one of a worker with its executors; each moves.
ACTIVE, ACTIVE_WORKER = "the active filter", "a worker of the active filter"
OVERLAY = Path(__file__).with_name("compose_overlay.yml")
PROJECT = "fraud-filter-faults"

#: Beside the defaults: no Grafana, whose image alone has a registry.
_CHANGES = {"COMPOSE_PROFILES": ""}
_UP_S = 600.0
_DOWN_S = 600.0
_BROKER_BACK_S = 120
#: What the executors in a worker's container were told about their driver.
_DRIVERS = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep CoarseGrainedScheduler@; true"

Offsets = dict[int, int]


@dataclass
class ComposeStack:
    """The stack, a probe on its output topics, and how far things are.

    `keep_logs`, with a word for their names, keeps those of the containers as they are now.
    """

    stack: Stack
    settings: Settings
    probe: Probe
    say: Say
    keep_logs: Callable[[str], None] = lambda _: None

    @property
    def filters(self) -> tuple[str, ...]:
        """The services that are filters: one, or with a standby two."""
        return (FILTER, STANDBY) if self.stack.has_standby else (FILTER,)

    def container(self, service: str) -> Container:
        """The service's container as it is now, the first of several; also of `ACTIVE` and `ACTIVE_WORKER`.

        Raises:
            FraudFilterError: there is none.
        """
        if service == ACTIVE:
            service = (rollout.active(self.stack) or service) if self.stack.has_standby else FILTER
        elif service == ACTIVE_WORKER:
            if self.stack.has_standby:
                return self._worker_of(self.container(ACTIVE))
            service = WORKER
        for state in self.stack.states():
            if state.service == service:
                return state.container
        raise FraudFilterError(f"the stack {self.stack.name} has no container of {service}")

    def _worker_of(self, driver: Container) -> Container:
        networks = driver.attrs["NetworkSettings"]["Networks"].values()
        names = [str(driver.id)[:12], str(driver.name), *(str(network["IPAddress"]) for network in networks)]
        for state in self.stack.states():
            if state.service in (WORKER, STANDBY_WORKER) and state.state == "running":
                told = execute(state.container, "sh", "-c", _DRIVERS)[1].decode(errors="replace")
                if any(f"@{name}{end}" in told for name in names for end in ":."):
                    return state.container
        raise FraudFilterError(f"no worker of the stack {self.stack.name} has an executor of the active filter")

    def execute(self, service: str, script: str, *words: str) -> str:
        """Runs a shell script, with `words` as its arguments, in the service's container; returns what it prints."""
        code, output = execute(self.container(service), "sh", "-c", script, "sh", *words)
        text = output.decode(errors="replace").strip()
        if code:
            raise FraudFilterError(f"a command in the container of {service} failed with code {code}: {text}")
        return text

    @retry(retry=retry_if_exception_type(FraudFilterError), stop=stop_after_delay(_BROKER_BACK_S), wait=wait_fixed(0.2),
           reraise=True)  # fmt: skip
    def ends(self) -> Offsets:
        """The end of each partition of the input topic, as soon as a broker answers."""
        with open_input(self.settings) as topic:
            return topic.end_offsets()

    def metric(self, name: str, label: str, service: str = FILTER) -> dict[str, float]:
        """A metric of a filter's, by one of its labels; empty while the filter does not answer."""
        found = rollout.samples(self.stack, service)
        return {sample.labels.get(label, ""): sample.value for sample in found if sample.name == name}

    def committed(self) -> Offsets:
        """The newest commit that a filter tells of; partitions without one are left out."""
        newest: Offsets = {}
        for service in self.filters:
            for number, end in self.metric("fraud_filter_committed_offset", "partition", service).items():
                newest[int(number)] = max(int(end), newest.get(int(number), 0))
        return newest

    def await_decisions(self, offsets: Offsets, timeout_s: float) -> None:
        """Waits until a decision about a payment at or after `offsets` has come out of each partition."""
        late = f"no decisions came about payments at or after the offsets {offsets}"
        wait_until(lambda: self.probe.has_passed(offsets), timeout_s, late)

    def await_ready(self, timeout_s: float) -> None:
        """Waits until every service is healthy."""
        services = self.stack.services()
        healthy = lambda: not unready(self.stack, services)  # noqa: E731
        wait_until(healthy, timeout_s, "not all services were healthy", every_s=1)


@contextmanager
def compose_stack(mode: ModeName, rate: float, say: Say, query: str = "", **changes: str) -> Iterator[ComposeStack]:
    """Brings up the stack in `mode`, with `rate` payments per second; takes it down with its data at the end.

    Args:
        query: FILE.py:FUNCTION on this machine, in place of the fraud filter.
        changes: settings of its environment file.

    Raises:
        FraudFilterError: the stack could not be brought up, or what is done with it failed; the logs are kept then.
        UsageError: no Docker Engine answers.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP.
    """
    with stop_signals(), Workspace(f"{PROJECT}-") as workspace:
        own = {"FRAUD_MODE": mode, "GENERATOR_RATE": f"{rate:.10g}", **_CHANGES, **changes}
        place, _, function = query.rpartition(":")
        if query:
            of_rules = dict.fromkeys(("FRAUD_RULES", "FRAUD_FEATURES_UNSUPPORTED"), "")
            own |= {"FRAUD_QUERY": f"{env_file.CONF}/{Path(place).name}:{function}", **of_rules}
        stack = Stack.open(make_own_env(workspace.path / ".env", PROJECT, **own), overlays=(OVERLAY,))
        stack.values |= own  # the environment has no say in them
        if query:
            shutil.copy(place, stack.conf)
        try:
            images.prepare(stack)
            say(f"starting {stack.name} in {mode} mode")
            start(stack, ["--remove-orphans"], stack.services(), _UP_S)
            settings = load({"query": query}, env_file=stack.env)
            with Probe(settings) as probe:
                yield ComposeStack(stack, settings, probe, say, partial(_keep_logs, stack, workspace))
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


def make_own_env(path: Path, project: str, **changes: str) -> Path:
    """Makes the file from `.env.example`, with secrets, free ports and a project name of its own."""
    env_file.make(path)
    values = {name: str(port) for name, port in ports_of(path).items()}
    own = {"COMPOSE_PROJECT_NAME": project, "KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{values['KAFKA_PORT']}"}
    for name, value in {**own, **values, **changes}.items():
        env_file.change(path, name, value)
    return path


def ports_of(path: Path) -> dict[str, int]:
    """A free port for each port that the environment file names."""
    names = [name for name in env_file.read(path) if name.endswith("_PORT")]
    return dict(zip(names, free_ports(len(names)), strict=True))
