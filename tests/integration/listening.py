"""Which TCP ports a container listens on, as its kernel says, and what each of them is for."""

from __future__ import annotations

import ipaddress

from docker.models.containers import Container

from fraud_filter.compose.stack import execute

#: State 0A of /proc/net/tcp: LISTEN.
_LISTEN = "0A"
#: Each container's way to Docker's name server: at a random port, of the engine's own.
_NAME_SERVER = ipaddress.ip_address("127.0.0.11")
#: Ports from here on are handed out at random.
_RANDOM = 32768
ANY = "any"

_METRICS = "metrics"
#: Every port, by service and number. What is not here makes the test fail.
PURPOSES: dict[tuple[str, int | str], str] = {
    ("kafka", 9092): "clients in the stack",
    ("kafka", 9093): "the broker's own controller",
    ("kafka", 9094): "the administrator, by certificate",
    ("kafka", 29092): "clients on this machine",
    ("spark-master", 7077): "workers and drivers, with Spark's secret",
    ("spark-master", 8080): "page: workers and applications",
    ("spark-worker", 7078): "the master, with Spark's secret",
    ("spark-worker", 7080): "executors' blocks, with Spark's secret",
    ("spark-worker", 8081): "page: executors and their logs",
    ("fraud-filter", 4040): "page: the query",
    ("fraud-filter", 7079): "executors, with Spark's secret",
    ("fraud-filter", 7080): "the driver's blocks, with Spark's secret",
    ("fraud-filter", 9400): _METRICS,
    ("fraud-filter", ANY): "between Python and Java (Py4J), with a token",
    ("probe", 9401): _METRICS,
    ("generator", 9402): _METRICS,
    ("prometheus", 9090): "page and API",
    ("alertmanager", 9093): "alerts, silences and metrics",
    ("grafana", 3000): "page and API",
    **{(service, 9404): "metrics of Java" for service in ("kafka", "spark-master", "spark-worker", "fraud-filter")},
}


def listening(container: Container) -> dict[int | str, bool]:
    """Ports that programs listen on; true where only those of the container itself can connect.

    The random ports of a container's own address are one: `ANY`.
    """
    code, output = execute(container, "cat", "/proc/net/tcp", "/proc/net/tcp6")
    assert code == 0, output
    found: dict[int | str, bool] = {}
    for words in (line.split() for line in output.decode().splitlines()):
        if words[3] == _LISTEN:
            address, port = _parsed(words[1])
            if address != _NAME_SERVER:
                name = ANY if address.is_loopback and port >= _RANDOM else port
                found[name] = address.is_loopback and found.get(name, True)
    return found


def _parsed(text: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]:
    """An address and a port as the kernel writes them: words of 4 bytes, each of them backwards."""
    words, port = text.split(":")
    address = b"".join(bytes.fromhex(words[at : at + 8])[::-1] for at in range(0, len(words), 8))
    found = ipaddress.ip_address(address)
    return getattr(found, "ipv4_mapped", None) or found, int(port, 16)
