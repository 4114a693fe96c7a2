"""What a container gets from the services that it reaches: runs inside one, and tries every port, page, topic and API.

Its argument is a `Task` as JSON, its output a list of attempts. What it may try to log in with lies in /run/secrets.
Nothing here changes the stack when it is as it should be: what must be refused is tried, the rest is only looked at.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import requests

import intruder_kafka
from intruder_kafka import NOTHING

CONNECT = "connect"
#: Seconds: for a connection within the machine, and for a page.
_CONNECT_S = 4.0
_ANSWER_S = 40.0
_SECRETS = Path("/run/secrets")


#: Service, port and address.
Place = tuple[str, int, str]


class Task(TypedDict):
    """Where what listens, by service, port and address; Kafka's topics and groups; which secrets log in where."""

    ports: list[Place]
    kafka_port: int
    topics: list[str]
    groups: list[str]
    users: list[str]
    tokens: list[str]
    passwords: dict[str, str]


class Attempt(NamedTuple):
    """What was tried with which secret, and what came of it; `refusal` is empty when it was had."""

    service: str
    port: int
    held: str
    what: str
    refusal: str


#: Pages and APIs by port: name, method and path.
PAGES: dict[int, list[tuple[str, str, str]]] = {
    4040: [
        ("query's page", "GET", "/api/v1/applications"),
        ("threads", "GET", "/executors/threadDump/?executorId=driver"),
    ],
    6066: [("submit a program", "POST", "/v1/submissions/create")],
    8080: [("master's page", "GET", "/json/")],
    8081: [("worker's page", "GET", "/json/")],
    **{key: [("metrics", "GET", "/metrics")] for key in (9400, 9401, 9402, 9404)},
    9090: [
        ("figures", "GET", "/api/v1/query?query=up"),
        ("settings", "GET", "/api/v1/status/config"),
        ("profile", "GET", "/debug/pprof/cmdline"),
        ("reload", "POST", "/-/reload"),
        ("quit", "POST", "/-/quit"),
        ("snapshot", "POST", "/api/v1/admin/tsdb/snapshot"),
        ("delete figures", "POST", "/api/v1/admin/tsdb/delete_series?match[]=up"),
        ("write figures", "POST", "/api/v1/write"),
    ],
    9093: [
        ("alerts and silences", "GET", "/api/v2/silences"),
        ("settings", "GET", "/api/v2/status"),
        ("metrics", "GET", "/metrics"),
    ],
    3000: [
        ("dashboards", "GET", "/api/search"),
        ("settings", "GET", "/api/admin/settings"),
        ("data source", "GET", "/api/datasources"),
    ],
}
SPARK_RPC = (7077, 7078, 7079, 7080)
KAFKA = (9092, 9094, 29092)
#: Names itself as 127.0.0.1 to its clients.
_KAFKA_HOST = 29092


def main(task: Task) -> list[Attempt]:
    """Everything, several at a time."""
    with ThreadPoolExecutor(24) as pool:
        answers = zip(task["ports"], pool.map(_connects, task["ports"]), strict=True)
        # By one of its addresses is enough.
        reached = {(service, port): address for (service, port, address), is_open in answers if is_open}
        found = [Attempt(service, port, NOTHING, CONNECT, "") for service, port in reached]
        jobs = [pool.submit(job) for (service, port), address in reached.items()
                for job in _jobs(task, (service, port, address))]  # fmt: skip
        return found + [attempt for job in jobs for attempt in job.result()]


def _connects(place: Place) -> bool:
    try:
        socket.create_connection((place[2], place[1]), _CONNECT_S).close()
    except OSError:
        return False
    return True


def _jobs(task: Task, place: Place) -> Iterator[Callable[[], list[Attempt]]]:
    service, port, address = place
    if port in PAGES:
        logins: dict[str, Any] = {NOTHING: {}}
        logins |= {name: {"headers": {"Authorization": f"Bearer {_secret(name)}"}} for name in task["tokens"]}
        logins |= {name: {"auth": (user, _secret(name))} for name, user in task["passwords"].items()}
        for held, login in logins.items():
            yield partial(_ask_pages, service, port, address, held, login)
    elif port in SPARK_RPC:
        yield lambda: [Attempt(service, port, NOTHING, "call", _call_spark(address, port))]
    elif port in KAFKA:
        server = f"{service}:{port}"
        if port == _KAFKA_HOST:
            server = f"127.0.0.1:{task['kafka_port']}"
            intruder_kafka.forward(task["kafka_port"], address, port)
        for held, login in intruder_kafka.logins(_SECRETS, task["users"]):
            yield partial(_ask_kafka, task, place, server, held, login)


def _ask_kafka(task: Task, place: Place, server: str, held: str, login: dict[str, Any]) -> list[Attempt]:
    answers = intruder_kafka.ask(login, server, task["topics"], task["groups"])
    return [Attempt(place[0], place[1], held, *answer) for answer in answers.items()]


def _secret(name: str) -> str:
    return (_SECRETS / name).read_text()


# -- pages


def _ask_pages(service: str, port: int, address: str, held: str, login: dict[str, Any]) -> list[Attempt]:
    url = f"http://{address}:{port}"
    return [
        Attempt(service, port, held, name, _ask_page(method, url + path, login)) for name, method, path in PAGES[port]
    ]


def _ask_page(method: str, url: str, login: dict[str, Any]) -> str:
    """Its refusal. Alertmanager answers 503 to more than 8 at a time (--web.get-concurrency): that refuses nobody."""
    deadline = time.monotonic() + _ANSWER_S
    while True:
        try:
            answer = requests.request(method, url, timeout=_ANSWER_S, allow_redirects=False, **login)
        except requests.RequestException as error:
            said = type(error).__name__
        else:
            said = "" if answer.ok else str(answer.status_code)
            if "try again later" not in answer.text:
                return said
        if time.monotonic() > deadline:
            return said
        time.sleep(1)


# -- Spark's own protocol (TransportFrameDecoder, MessageEncoder): length of the frame, type of the message, its fields


def _call_spark(address: str, port: int) -> str:
    """What becomes of a call without a login: "" when the service itself looks at it."""
    call = struct.pack(">qbqi", 8 + 1 + 8 + 4, 3, 1, 0)  # RpcRequest 1, without a body
    with socket.create_connection((address, port), _CONNECT_S) as connection:
        connection.settimeout(_CONNECT_S)
        connection.sendall(call)
        try:
            answer = connection.recv(65536)
        except OSError as error:
            return type(error).__name__
    # In its traceback when it waits for a login first.
    return "login" if b"spark.network.sasl" in answer or not answer else ""


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))  # noqa: T201 - its result
