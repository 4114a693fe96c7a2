"""Who gets what: intruders in each network of both stacks and in none, without and with each secret of the secure one.

The tables of the documentation are made here: WRITE_DOCS=1 writes them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import requests

import documented
import intruders
from deployed import Deployed
from fraud_filter.compose.stack import execute
from intruder import Attempt
from intruder_kafka import NOTHING
from intruders import NETWORKS, OUTSIDE, SUBMISSIONS, gets, reached
from listening import ANY, PURPOSES

#: What each network is there for: whoever is in it reaches these services, and no others.
MEMBERS = {
    "alerts": {"alertmanager", "prometheus"},
    "kafka": {"kafka", "fraud-filter"},  # Spark's own ports are not open here
    "load": {"kafka", "probe", "generator", "prometheus"},
    "monitoring": {"prometheus"},
    "receiver": {"alertmanager"},
    "spark": {"spark-master", "spark-worker", "fraud-filter", "prometheus"},
}


#: Its image can't be pulled everywhere.
UNDOCUMENTED = "grafana"


@dataclass(frozen=True)
class Intruded:
    """A stack, and what was tried from each network."""

    name: str
    deployed: Deployed
    listeners: intruders.Listeners
    attempts: dict[str, list[Attempt]]

    @property
    def mark(self) -> str:
        """Behind the names of its tables."""
        return "-secure" if self.name == "secured" else ""


@pytest.fixture(scope="module", params=["stack", "secured"])
def intruded(request: pytest.FixtureRequest) -> Intruded:
    deployed: Deployed = request.getfixturevalue(request.param)
    listeners = intruders.find_listeners(deployed.open())
    return Intruded(request.param, deployed, listeners, intruders.send(deployed, (*NETWORKS, OUTSIDE)))


def test_every_listening_port_is_known_and_who_may_reach_it(intruded: Intruded) -> None:
    stack = intruded.deployed.open()
    published = {
        (state.service, int(port.split("/")[0])): binding[0]["HostPort"]
        for state in intruders.running(stack)
        for port, binding in state.container.ports.items()
        if binding
    }
    settings = {value: name for name, value in stack.values.items() if name.endswith("_PORT")}
    rows: list[tuple[str, ...]] = []
    for service, found in sorted(intruded.listeners.items()):
        if service == UNDOCUMENTED:
            continue
        for port, own in sorted(found.items(), key=lambda each: (each[0] == ANY, each[0])):
            assert (service, port) in PURPOSES, f"{service} listens on {port}, and nobody knows why"
            networks = [name for name in NETWORKS if (service, port) in reached(intruded.attempts[name])]
            assert own != bool(networks), f"{service}:{port} can't be reached where it should be"
            here = settings.get(published.get((service, port), ""), "")  # type: ignore[arg-type]
            shown = "itself" if own else ", ".join(f"`{name}`" for name in networks)
            rows.append((service, str(port), PURPOSES[service, port], shown, f"`{here}`" if here else "-"))
    columns = ("service", "port", "for", "reached in", "published at")
    if intruded.name == "secured":
        rows = documented.changes(documented.rows_of("ports"), rows)
    documented.hold(f"ports{intruded.mark}", columns, rows)


def test_who_gets_what(intruded: Intruded) -> None:
    networks: dict[tuple[str, str], list[str]] = {}
    for network in NETWORKS:
        tried = intruded.attempts[network]
        for_all = gets(tried, NOTHING)
        for held in dict.fromkeys(attempt.held for attempt in tried):
            had = gets(tried, held)
            more = {place: words for place, words in had.items() if held == NOTHING or words != for_all.get(place)}
            shown = {place: words for place, words in more.items() if not place.startswith(UNDOCUMENTED)}
            if shown:
                networks.setdefault((held, _cell(shown)), []).append(f"`{network}`")
    rows = [
        (", ".join(where), held if held == NOTHING else f"`{held}`", had) for (held, had), where in networks.items()
    ]
    documented.hold(f"intruders{intruded.mark}", ("in the network", "with", "gets"), rows)


def _cell(had: dict[str, list[str]]) -> str:
    """What was had, and after it where: places that give the same stand together."""
    places: dict[str, list[str]] = {}
    for place, words in had.items():
        places.setdefault(documented.in_short(words), []).append(f"`{place}`")
    return "; ".join(f"{words}: {' '.join(where)}" for words, where in places.items())


def test_networks_hold_only_what_must_talk(intruded: Intruded) -> None:
    for network, services in MEMBERS.items():
        assert {service for service, _ in reached(intruded.attempts[network])} - {UNDOCUMENTED} == services, network
    assert intruded.attempts[OUTSIDE] == []


def test_nothing_is_had_without_a_login_but_figures(intruded: Intruded) -> None:
    """In the local stack Kafka, Prometheus and Spark's pages trust whoever reaches them, and nothing else does.

    Alertmanager does in both: its networks keep others away.
    """
    had = {
        what
        for tried in intruded.attempts.values()
        for place, words in gets(tried, NOTHING).items()
        for what in words
        if place != "alertmanager:9093"
    }
    assert not had & {"submit a program", "call", "reload", "quit", "snapshot", "delete figures", "write figures"}
    assert not any(f"{UNDOCUMENTED}:3000" in gets(tried, NOTHING) for tried in intruded.attempts.values())
    if intruded.name == "secured":
        assert had == {"metrics"}


def test_secrets_open_what_they_are_for_and_nothing_else(intruded: Intruded) -> None:
    if intruded.name == "stack":
        assert {attempt.held for tried in intruded.attempts.values() for attempt in tried} == {NOTHING}
        return
    for tried in intruded.attempts.values():
        for_all = gets(tried, NOTHING)
        for held in {attempt.held for attempt in tried} - {NOTHING}:
            opened = {place for place, words in gets(tried, held).items() if words != for_all.get(place)}
            assert opened <= OPENS.get(held, set()), held


_KAFKA = {"kafka:9092", "kafka:29092"}
OPENS = {
    **dict.fromkeys(("kafka-filter", "kafka-generator", "kafka-probe", "kafka-operator"), _KAFKA),
    "kafka-admin.key": {"kafka:9094"},
    "spark-ui-token": {"spark-master:8080", "spark-worker:8081", "fraud-filter:4040"},
    "prometheus-password": {"prometheus:9090"},
    "grafana-password": {"grafana:3000"},
}


def test_spark_takes_no_programs_from_anywhere(intruded: Intruded) -> None:
    """Its submission server is on by default and asks for no secret (SPARK-51165)."""
    service, port = SUBMISSIONS
    for tried in intruded.attempts.values():
        assert SUBMISSIONS not in reached(tried)
    places = intruders.places(intruded.deployed.open(), intruded.listeners)
    addresses = {address for name, number, address in places if (name, number) == SUBMISSIONS}
    assert addresses
    for address in (*addresses, "127.0.0.1"):
        assert intruders.refuses(address, port), f"{service} takes programs at {address}"


def test_no_network_has_a_way_out_but_that_of_alertmanager_alone(intruded: Intruded) -> None:
    """Where a port is published there is a route out, but no address that an answer could be sent to."""
    stack = intruded.deployed.open()
    ways = {}
    for name in NETWORKS:
        network = stack.client.networks.get(f"{stack.name}_{name}").attrs
        ways[name] = "none" if network["Internal"] else network["Options"].get(_MASQUERADE)
    closed = {"alerts", "kafka", "spark"} if stack.secure else {"alerts", "kafka"}
    assert ways == {name: "none" if name in closed else "false" for name in NETWORKS} | {"receiver": None}
    for state in intruders.running(stack):
        code, routes = execute(state.container, "cat", "/proc/net/route")
        assert code == 0, routes
        leaves = [line for line in routes.decode().splitlines() if line.split()[1] == "00000000"]
        shut = {
            network.removeprefix(f"{stack.name}_") for network in state.container.attrs["NetworkSettings"]["Networks"]
        }
        assert bool(leaves) != (shut <= closed), state.service


_MASQUERADE = "com.docker.network.bridge.enable_ip_masquerade"


# -- what a page of another site could do in a browser on this machine; the secure stack's pages want a login


def test_no_link_of_the_master_s_page_ends_an_application(stack: Deployed) -> None:
    (application,) = stack.json("SPARK_MASTER_UI_PORT", "/json/")["activeapps"]
    url = stack.url("SPARK_MASTER_UI_PORT", f"/app/kill/?id={application['id']}&terminate=true")
    # Nobody takes the order; a GET is answered with the page itself.
    assert requests.post(url, timeout=20, allow_redirects=False).status_code == 405
    requests.get(url, timeout=20)
    (after,) = stack.json("SPARK_MASTER_UI_PORT", "/json/")["activeapps"]
    assert (after["id"], after["state"]) == (application["id"], "RUNNING")


def test_other_sites_can_t_read_prometheus(stack: Deployed) -> None:
    own = stack.url("PROMETHEUS_PORT", "")
    for origin, allowed in (("http://127.0.0.1:1", None), ("https://example.org", None), (own, own)):
        answer = requests.get(f"{own}/api/v1/query?query=up", headers={"Origin": origin}, timeout=30)
        assert (origin, answer.headers.get("Access-Control-Allow-Origin")) == (origin, allowed)
