"""One Compose project: its settings in force, its containers, how `docker compose` is called, and its starts."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import docker
import yaml
from docker.errors import DockerException
from docker.models.containers import Container

from fraud_filter.compose import env_file
from fraud_filter.config import Settings, check_env_file, env_name
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.home import HOME

#: Where its ports are published.
LOCAL = "127.0.0.1"
_PROJECT = "com.docker.compose.project"
_SERVICE = "com.docker.compose.service"
_ONE_OFF = "com.docker.compose.oneoff"

#: A container that was restarted so often does not recover by itself.
_RESTARTS = 3
#: Optional services, by their profiles.
GRAFANA, STANDBY, BROKERS = "grafana", "standby", "brokers"
#: The service of the filter; the standby's is named as its profile.
FILTER = "fraud-filter"
_PROFILES = "COMPOSE_PROFILES"
#: Whether there is a standby, and how many brokers: the profiles follow them.
_STANDBY, _BROKERS = "STANDBY", "BROKERS"

#: For the answer of Docker, in seconds.
_ANSWER_S = 20
#: Last lines of a service's log that are shown.
_LOG_LINES = 15
#: Seconds that Compose gets to end by itself after its own time is over.
_END_S = 30.0


def connect() -> docker.DockerClient:
    """A client of the engine that this machine's `docker` command talks to.

    Raises:
        UsageError: no engine answers, or the Compose plugin is missing; says what to install.
    """
    if not shutil.which("docker"):
        raise UsageError("the stack needs Docker, and there is no `docker` command: install Docker Engine with Compose")
    try:
        client = docker.from_env(timeout=_ANSWER_S)
        client.ping()
    except DockerException as error:
        reason = "permission denied" if "permission denied" in str(error).lower() else "start it, or see `docker info`"
        raise UsageError(f"the stack needs a Docker Engine, and none answers: {reason}") from None
    compose = subprocess.run(["docker", "compose", "version"], capture_output=True, timeout=_ANSWER_S, check=False)
    if compose.returncode:
        raise UsageError("the stack needs Compose v2, and `docker compose` is not there: install the Compose plugin")
    return client


@dataclass(frozen=True)
class ServiceState:
    """A container as the engine sees it. `health` is empty where there is no healthcheck."""

    service: str
    container: Container
    state: str
    health: str
    exit_code: int
    restarts: int
    one_shot: bool

    @property
    def ready(self) -> bool:
        """Healthy; or, of a service that runs once, ended well."""
        if self.one_shot:
            return self.state == "exited" and self.exit_code == 0
        return self.state == "running" and self.health in ("", "healthy")

    @property
    def broken(self) -> bool:
        """It won't become ready by waiting: ended badly, or restarted again and again."""
        ended_badly = self.one_shot and self.state == "exited" and self.exit_code != 0
        return not self.ready and (ended_badly or self.restarts >= _RESTARTS)

    @property
    def word(self) -> str:
        """State and health in a few words."""
        if self.state == "exited":
            return "done" if self.ready else f"exited with code {self.exit_code}"
        return f"{self.state}, {self.health}" if self.health else self.state


def execute(container: Container, *command: str) -> tuple[int, bytes]:
    """Runs a command in a container; returns its exit code and what it printed, with its errors where it failed.

    By the `docker` command: docker-py loses the output that comes in one piece with the answer's head (docker-py#3332).
    """
    done = subprocess.run(["docker", "exec", str(container.id), *command], capture_output=True, check=False)
    return done.returncode, done.stdout + (done.stderr if done.returncode else b"")


@dataclass
class Stack:
    """A project of `docker-compose.yml`. `values` are the settings in force: the environment's win over the file's.

    `overlays` are further Compose files that are laid over it.
    """

    client: docker.DockerClient
    env: Path
    values: dict[str, str]
    profiles: list[str] = field(default_factory=list)
    overlays: tuple[Path, ...] = ()

    @classmethod
    def open(cls, env: Path, *, make: bool = False, overlays: tuple[Path, ...] = ()) -> Stack:
        """The project that an environment file describes; with `make` the file is made when it is not there.

        Raises:
            UsageError: no engine answers, there is no such file, or it may not be believed.
        """
        client = connect()
        if not env.exists():
            if not make:
                raise UsageError(f"the stack was never started: there is no {env}; `fraud-filter up` makes it")
            env_file.make(env)
        check_env_file(env)
        values = {name: os.environ.get(name, value) for name, value in env_file.read(env).items()}
        return cls(client, env, values, _profiles(values), overlays)

    @property
    def name(self) -> str:
        """Name of the Compose project."""
        named = self.values.get("COMPOSE_PROJECT_NAME")
        return named or str(yaml.safe_load(env_file.COMPOSE_FILE.read_text(encoding="utf-8"))["name"])

    def value(self, name: str) -> str:
        """A setting's value.

        Raises:
            UsageError: there is none.
        """
        if not self.values.get(name):
            raise UsageError(f"{self.env} has no value for {name}: give one; .env.example says what it means")
        return self.values[name]

    def change(self, name: str, value: str) -> None:
        """Gives a setting another value, in the file and for this run."""
        env_file.change(self.env, name, value)
        self.values[name] = value

    def remove(self, name: str) -> None:
        """Takes a setting away, in the file and for this run."""
        env_file.remove(self.env, name)
        self.values.pop(name, None)

    @property
    def conf(self) -> Path:
        """The folder beside `.env` that the containers see (`conf.py`)."""
        return self.env.absolute().parent / env_file.CONF

    @property
    def own_kafka(self) -> bool:
        """Whether the stack has a broker of its own, and does not use one that is there already."""
        return env_file.EXISTING_KAFKA_FILE not in env_file.compose_files(self.values)

    @property
    def secure(self) -> bool:
        """Whether this is the secure stack."""
        return env_file.SECURE_FILE in env_file.compose_files(self.values)

    @property
    def has_standby(self) -> bool:
        """Whether a second filter waits beside the active one."""
        return STANDBY in self.profiles

    def set_standby(self, wanted: bool | None) -> None:
        """Writes into `.env` whether there is a standby, from now on; None leaves it, and has Compose's profiles agree.

        Raises:
            UsageError: STANDBY is neither 0 nor 1, or BROKERS neither 1 nor 3, or 3 of a Kafka that is not the stack's.
        """
        if wanted is not None and self.values.get(_STANDBY) != str(int(wanted)):
            self.change(_STANDBY, str(int(wanted)))
        if self.value(_STANDBY) not in ("0", "1"):
            raise UsageError(f"{_STANDBY}={self.values[_STANDBY]} is not accepted: give 1 for a standby, else 0")
        brokers = self.values.get(_BROKERS) or "1"
        if brokers not in ("1", "3"):
            raise UsageError(f"{_BROKERS}={brokers} is not accepted: give 1 or 3")
        if brokers == "3" and not self.own_kafka:
            raise UsageError(f"{_BROKERS}=3 is not accepted with {env_file.EXISTING_KAFKA_FILE.name}: give 1")
        self.profiles = _profiles(self.values)
        named = ",".join(self.profiles)
        if named != self.values.get(_PROFILES, ""):
            self.change(_PROFILES, named)

    def command(self, *words: str) -> list[str]:
        """`docker compose ...` of this project."""
        files = [word for path in self._files() for word in ("--file", str(path))]
        project = ("--project-directory", str(HOME), "--env-file", str(self.env), "--project-name", self.name)
        return ["docker", "compose", *project, *files, *words]

    def _files(self) -> tuple[Path, ...]:
        return (*env_file.compose_files(self.values), *self.overlays)

    def environment(self) -> dict[str, str]:
        """What `docker compose` gets as its environment: the stack's settings in force, and the profiles of this run.

        Of the file nothing else: a PATH there would say which `docker` is run, and DOCKER_HOST for whom.
        """
        known = {*env_file.variables(self._files()), *map(env_name, Settings.model_fields)}
        values = {name: value for name, value in self.values.items() if name in known}
        values["CONF_DIR"] = str(self.conf)
        return {**os.environ, **values, _PROFILES: ",".join(self.profiles)}

    def compose(self, *words: str, timeout_s: float | None = None) -> subprocess.CompletedProcess[str]:
        """Runs it to its end; both outputs are captured."""
        return subprocess.run(
            self.command(*words),
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=timeout_s,
        )

    def services(self) -> list[str]:
        """Names of the services that belong to this run.

        Raises:
            UsageError: Compose does not accept the file or the values of `.env`, such as one that is missing.
        """
        listed = self.compose("config", "--services")
        if listed.returncode:
            said = (listed.stdout.strip().splitlines() or ["no reason is given"])[-1]
            raise UsageError(f"{self.env}, or a Compose file, is not accepted: {said}")
        return listed.stdout.split()

    def states(self) -> list[ServiceState]:
        """Every container of the project, by service."""
        labels = [f"{_PROJECT}={self.name}", f"{_ONE_OFF}=False"]
        found = self.client.containers.list(all=True, filters={"label": labels}, ignore_removed=True)
        return sorted((_state(container) for container in found), key=lambda state: state.service)


def _profiles(values: dict[str, str]) -> list[str]:
    wanted = {STANDBY: values.get(_STANDBY) == "1", BROKERS: values.get(_BROKERS) == "3"}
    names = [name for name in values.get(_PROFILES, "").split(",") if name not in ("", *wanted)]
    return [*names, *(name for name, is_wanted in wanted.items() if is_wanted)]


def _state(container: Container) -> ServiceState:
    attributes = container.attrs
    state = attributes["State"]
    return ServiceState(
        service=container.labels[_SERVICE],
        container=container,
        state=state["Status"],
        health=state.get("Health", {}).get("Status", ""),
        exit_code=state["ExitCode"],
        restarts=attributes.get("RestartCount", 0),
        one_shot=attributes["HostConfig"]["RestartPolicy"]["Name"] in ("", "no"),
    )


def start(stack: Stack, words: Iterable[str], services: list[str], timeout_s: float) -> float:
    """Runs `docker compose up --wait ...`, whose progress goes to stderr, until `services` are ready.

    Returns:
        The seconds that it took.

    Raises:
        FraudFilterError: a service was not ready within `timeout_s` seconds, or can't become ready.
    """
    began = time.monotonic()
    waiting = ("--wait", "--wait-timeout", str(math.ceil(timeout_s)))
    command = stack.command("up", "--detach", "--no-build", *waiting, *words)
    try:
        done = subprocess.run(command, env=stack.environment(), check=False, timeout=timeout_s + _END_S)
    except subprocess.TimeoutExpired:
        raise _failure(stack, services, f"not ready within {timeout_s:.0f} s") from None
    if done.returncode:
        is_over = time.monotonic() - began >= timeout_s
        raise _failure(stack, services, f"not ready within {timeout_s:.0f} s" if is_over else "it can't become ready")
    return time.monotonic() - began


def unready(stack: Stack, services: list[str]) -> dict[str, list[ServiceState]]:
    """The containers of each service that is not ready; a service may have none."""
    states = stack.states()
    found = {service: [state for state in states if state.service == service] for service in services}
    return {service: mine for service, mine in found.items() if not mine or not all(state.ready for state in mine)}


def _failure(stack: Stack, services: list[str], reason: str) -> FraudFilterError:
    """What is not ready; first what can't become so."""
    lines = []
    for name, mine in sorted(unready(stack, services).items(), key=lambda one: not any(each.broken for each in one[1])):
        lines.append(f"{name} is {', '.join(state.word for state in mine) or 'not there'}")
        for state in mine:
            if state.state != "created":
                log = state.container.logs(tail=_LOG_LINES).decode(errors="replace").rstrip()
                lines += [f"    {line}" for line in log.splitlines()]
    return FraudFilterError("\n".join([f"the stack did not come up: {reason}", *lines]))
