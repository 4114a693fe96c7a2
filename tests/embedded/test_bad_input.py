"""Bad input that only a broker or Spark can see: one clear message and exit code 2."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from exhaustive import exhaustive
from fraud_filter.config import load
from fraud_filter.kafka.topics import create_topics
from fraud_filter.records import most_written_bytes
from lab.harness.broker import HOST, Broker
from lab.harness.processes import free_ports
from lab.harness.workspace import Workspace
from running import Stage

VERBS = ("run", "generate", "probe", "audit")


class _Away(Broker):
    """Has a second listener, whose advertised address nobody listens at, and a third one with an IPv6 address."""

    def _configure(self, controller_port: int) -> Path:
        properties = super()._configure(controller_port)
        ports = free_ports(2)
        self.second, self.ipv6 = f"{HOST}:{ports[0]}", f"[::1]:{ports[1]}"
        more = {
            "listeners": f"BROKER://{self.address},AWAY://{self.second},SIX://{self.ipv6},"
            f"CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": f"BROKER://{self.address},AWAY://{HOST}:1,SIX://{self.ipv6}",
            "listener.security.protocol.map": ",".join(
                f"{name}:PLAINTEXT" for name in ("BROKER", "AWAY", "SIX", "CONTROLLER")
            ),
        }
        lines = [f"{name}={value}" for name, value in more.items()]
        properties.write_text("\n".join([properties.read_text(), *lines, ""]))
        return properties


@pytest.fixture(scope="module")
def away(java_home: Path, kafka_jars: list[Path]) -> Iterator[_Away]:
    """A broker of this module's own, which has the shipped topics."""
    with Workspace("fraud-filter-away-") as place:
        broker = _Away(place, java_home=java_home, jars=kafka_jars)
        with broker:
            create_topics(load({"kafka_bootstrap_servers": broker.address}))
            yield broker


def _refused(stage: Stage, *words: str, **settings: str) -> str:
    inherited = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "FRAUD_ENV_FILE")}
    answer = subprocess.run(
        [sys.executable, "-m", "fraud_filter", *words], capture_output=True, text=True, timeout=200, check=False,
        env={**inherited, **stage.environment(**settings)},
    )  # fmt: skip
    assert answer.returncode == 2, answer.stderr
    assert "Traceback" not in answer.stderr
    lines = [line for line in answer.stderr.splitlines() if line.startswith("fraud-filter:")]
    assert len(lines) == 1, answer.stderr
    return lines[0]


@pytest.mark.parametrize("verb", exhaustive(VERBS, but=["run", "audit"]))
def test_an_unreachable_broker(stage: Stage, verb: str) -> None:
    with socket.socket() as taken:  # bound and not listening: refuses connections
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        message = _refused(stage, verb, "--kafka-bootstrap-servers", address, "--kafka-timeout-s", "2")
    assert address in message
    assert "KAFKA_BOOTSTRAP_SERVERS" in message


@pytest.mark.parametrize("verb", exhaustive(VERBS, but=["generate", "probe"]))
def test_a_missing_topic(stage: Stage, verb: str) -> None:
    names = {"input_topic": "no-such-a", "flagged_topic": "no-such-b", "rejected_topic": "no-such-c"}
    message = _refused(stage, verb, **names)
    assert "no-such-" in message
    assert "fraud-filter topics" in message


@pytest.mark.parametrize("setting", exhaustive(["flagged_topic", "rejected_topic"], but=["flagged_topic"]))
def test_an_output_topic_that_takes_too_little(stage: Stage, topics: Callable[..., str], setting: str) -> None:
    needed = most_written_bytes(load())
    topic = topics("small", max_message_bytes=str(needed - 1))
    said = _refused(stage, "run", **{setting: topic})
    assert f"setting {setting} " in said
    assert f"'{topic}' has max.message.bytes={needed - 1}, less than the {needed} that a decision may have; " in said
    assert f"set max.message.bytes={needed} on the topic, or lower max_record_bytes" in said


def test_a_port_in_use(stage: Stage) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"{port} can't be used" in _refused(stage, "run", "--ui-port", str(port))
        assert f"port {port} of 127.0.0.1 is in use" in _refused(stage, "probe", "--probe-port", str(port))


def test_starting_offsets_beyond_the_end_are_refused_before_anything_is_written(stage: Stage) -> None:
    said = _refused(stage, "run", starting_offsets=json.dumps({stage.settings().input_topic: {"0": 9}}))
    assert "setting starting_offsets" in said
    assert "partition 0 has offsets 0 to 0, not 9" in said
    assert [path.name for path in (stage.directory / "checkpoint").iterdir()] == [".fraud-filter.lock"]


def test_the_shortest_real_time_duration(stage: Stage) -> None:
    message = _refused(stage, "run", mode="real-time", real_time_duration="1 second")
    assert "real_time_duration" in message


_VERBS_AWAY = {
    "run": [],
    "generate": [],
    "audit": [],
    "tail": [],
    "probe": [],
    "topics": [],
    "access": ["--passwords", "none"],
}


@pytest.mark.parametrize("verb", exhaustive(_VERBS_AWAY, but=["run", "generate", "probe", "access"]))
def test_an_advertised_address_that_is_not_reached(away: _Away, stage: Stage, verb: str) -> None:
    names = {"input_topic": "payments", "flagged_topic": "payments.flagged", "rejected_topic": "payments.rejected"}
    words = [verb, *_VERBS_AWAY[verb], "--kafka-bootstrap-servers", away.second, "--kafka-timeout-s", "2"]
    message = _refused(stage, *words, **names)
    assert repr(away.second) in message
    assert "told the address 127.0.0.1:1 for broker 1, which can't be reached from here: " in message
    assert "Connection refused" in message


def test_a_broker_with_an_ipv6_address(away: _Away) -> None:
    made = {**os.environ, "KAFKA_BOOTSTRAP_SERVERS": away.ipv6, "FRAUD_ENV_FILE": os.devnull}
    for words, told in (
        (["generate", "--count", "3", "--malformed-share", "0", "--flagged-share", "0"], "3 delivered, 0 failed"),
        (["audit"], "nothing lost, nothing unexpected"),
    ):
        program = [sys.executable, "-m", "fraud_filter", *words]
        done = subprocess.run(program, env=made, timeout=60, capture_output=True, text=True, check=False)
        assert (told in done.stdout, "Traceback" in done.stderr) == (True, False), done
