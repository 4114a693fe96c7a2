"""`fraud-filter access` on a real broker with the secure stack's settings: who is taken out of the file is out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from fraud_filter.compose import secrets
from fraud_filter.config import Settings, env_name, load
from fraud_filter.config.outputs import output_topics
from fraud_filter.errors import UsageError
from fraud_filter.kafka.access import ACCESS_FILE, Cluster, load_users
from fraud_filter.kafka.client import librdkafka_config
from fraud_filter.lock.group_lock import GroupLock
from fraud_filter.supervisor.signals import Stop
from fraud_filter.supervisor.written import WrittenDecisions
from lab.harness.workspace import Workspace
from running import until
from secured_broker import SecuredBroker

TOPIC = "payments"
MALLORY = "mallory"
_ACL = (ResourceType.TOPIC, TOPIC, ResourcePatternType.LITERAL)


@dataclass
class Place:
    broker: SecuredBroker
    directory: Path

    def access(self, *words: str, settings: Settings | None = None) -> subprocess.CompletedProcess[str]:
        """`fraud-filter access` as the administrator, or as somebody else."""
        chosen = (settings or self.broker.administrator()).model_dump(include=_CONNECTION)
        named = {env_name(name): str(value) for name, value in chosen.items()}
        return subprocess.run(
            [sys.executable, "-m", "fraud_filter", "access", "--passwords", str(self.directory), *words],
            env={**os.environ, **named, "FRAUD_ENV_FILE": "/dev/null"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=60,
        )  # fmt: skip

    def declare(self) -> None:
        """Leaves what the file declares, and nothing else."""
        settings = self.broker.administrator()
        users, cluster = load_users(settings), Cluster(settings)
        cluster.apply(cluster.compare(users, only_declared=True), users, self.directory)
        until(lambda: not list(cluster.compare(users, only_declared=True).lines()), "the broker knows of it")

    def file_without(self, user: str) -> Path:
        content = yaml.safe_load(ACCESS_FILE.read_text())
        content["users"] = [each for each in content["users"] if each["name"] != user]
        file = self.directory.parent / "access.yml"
        file.write_text(yaml.safe_dump(content))
        return file

    @cached_property
    def admin(self) -> Any:
        """Kept: answers are lost with a client that is gone."""
        return AdminClient(librdkafka_config(self.broker.administrator()))

    def give(self, principal: str, kind: AclPermissionType = AclPermissionType.ALLOW) -> None:
        right = AclBinding(*_ACL, principal, "*", AclOperation.WRITE, kind)
        for done in self.admin.create_acls([right]).values():
            done.result(10)

    def add_login(self, name: str, mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_512) -> None:
        (self.directory / name).touch()
        password = (self.directory / name).read_text() or "of-his-own"
        (self.directory / name).write_text(password)
        login = UserScramCredentialUpsertion(name, ScramCredentialInfo(mechanism, 4096), password.encode())
        for done in self.admin.alter_user_scram_credentials([login]).values():
            done.result(10)

    def known(self) -> set[str]:
        return set(self.admin.describe_user_scram_credentials().result(10))


_CONNECTION = {
    *("kafka_bootstrap_servers", "kafka_security_protocol", "kafka_sasl_mechanism", "kafka_sasl_username"),
    *("kafka_sasl_password_file", "kafka_ssl_ca", "kafka_ssl_certificate", "kafka_ssl_key"),
}


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory, java_home: Path, kafka_jars: list[Path]) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("access") / ".secrets"
    secrets.make(directory)
    with Workspace() as workspace:
        broker = SecuredBroker(workspace, directory, java_home=java_home, jars=kafka_jars)
        place = Place(broker, directory)
        broker.start()
        for made in place.admin.create_topics([NewTopic(TOPIC, 1)]).values():
            made.result(10)
        yield place
        broker.stop()


@pytest.fixture
def place(new: Place) -> Place:
    """As the file declares it."""
    new.declare()
    return new


def written(settings: Settings) -> str:
    """What becomes of a record: "" when it is taken."""
    said: list[str] = []
    producer = Producer(
        librdkafka_config(settings, message_timeout_ms=6000) | {"error_cb": lambda error: said.append(error.str())}
    )
    producer.produce(TOPIC, b"{}", on_delivery=lambda error, _: said.append(error.str() if error else ""))
    producer.flush(10)
    return "" if said == [""] else " ".join(said)


def await_written(settings: Settings, said: str = "") -> None:
    """Waits until a record is taken, or refused with these words: brokers hear of rights and logins after a moment."""
    until(lambda: (written(settings) == "") if said == "" else said in written(settings).lower(), said or "taken", 60)


def test_declared_users_get_their_logins_and_rights(new: Place) -> None:
    done = new.access("--only-declared")
    assert done.returncode == 0, done.stdout
    assert "+ kafka-generator: WRITE on topic payments\n" in done.stdout
    assert "+ kafka-generator: login with SCRAM-SHA-512\n" in done.stdout
    await_written(new.broker.user("kafka-generator"))
    again = new.access("--only-declared")
    assert [line for line in again.stdout.splitlines() if line[0] in "+-"] == []


def test_what_is_not_declared_goes(place: Place) -> None:
    """A user with login and right, a right of everybody, a refusal, and a second way to log in."""
    probe, generator = (place.broker.user(f"kafka-{name}") for name in ("probe", "generator"))
    await_written(probe, "authorization failed")
    place.add_login(MALLORY)
    place.add_login("kafka-generator", ScramMechanism.SCRAM_SHA_256)
    for principal in (f"User:{MALLORY}", "User:*", "User:\x1b]0;owned\x07"):
        place.give(principal)
    place.give("User:kafka-generator", AclPermissionType.DENY)
    for one in (place.broker.user(MALLORY), probe):
        await_written(one)
    await_written(generator, "authorization failed")
    done = place.access("--only-declared")
    assert done.returncode == 0, done.stdout
    assert {line for line in done.stdout.splitlines() if line[0] in "+-"} == {
        "- mallory: login with SCRAM-SHA-512",
        "- mallory: WRITE on topic payments",
        "- *: WRITE on topic payments",
        "- \\x1b]0;owned\\x07: WRITE on topic payments",
        "- kafka-generator: DENY WRITE on topic payments",
        "- kafka-generator: login with SCRAM-SHA-256",
    }
    await_written(place.broker.user(MALLORY), "authentication failed")
    await_written(probe, "authorization failed")
    await_written(generator)
    assert MALLORY not in place.known()


def test_the_filter_alone_may_lock_a_checkpoint_that_is_on_no_local_disk(place: Place) -> None:
    with subprocess.Popen(["sleep", "100"]) as java:
        files: Any = SimpleNamespace(pid=java.pid, qualified="hdfs://names:8020/checkpoint")
        with closing(GroupLock(place.broker.user("kafka-filter"), "filter", "setting checkpoint")) as lock:
            lock.hold(files)
            assert lock.lost == ""
        refused = r"Kafka's user 'kafka-probe' lacks READ on the groups fraud-filter-lock-\*; give it that right"
        with pytest.raises(UsageError, match=refused):
            GroupLock(place.broker.user("kafka-probe"), "filter", "setting checkpoint").hold(files)
        java.kill()


def test_a_dry_run_shows_it_and_changes_nothing(place: Place) -> None:
    place.add_login(MALLORY)
    place.give(f"User:{MALLORY}")
    await_written(place.broker.user(MALLORY))
    file = place.file_without("kafka-probe")
    shown = place.access("--only-declared", "--dry-run", "--access-file", str(file))
    assert shown.returncode == 0, shown.stdout
    assert f"- {MALLORY}: WRITE on topic payments\n" in shown.stdout
    assert "- kafka-probe: login with SCRAM-SHA-512\n" in shown.stdout
    assert shown.stdout.endswith("nothing was changed\n")
    await_written(place.broker.user(MALLORY))
    assert "kafka-probe" in place.known()


def test_a_cluster_that_others_share_keeps_them_unless_told(place: Place) -> None:
    place.add_login(MALLORY)
    place.give(f"User:{MALLORY}")
    await_written(place.broker.user(MALLORY))
    done = place.access()
    assert done.returncode == 0, done.stdout
    assert f"not in access.yml, and left alone: {MALLORY} (--only-declared removes them)\n" in done.stdout
    await_written(place.broker.user(MALLORY))


def test_an_administrator_with_a_password_does_not_lock_itself_out(place: Place) -> None:
    place.add_login("root-of-kafka")
    rights = [
        AclBinding(kind, name, ResourcePatternType.LITERAL, "User:root-of-kafka", "*", AclOperation.ALL,
                   AclPermissionType.ALLOW)
        for kind, name in ((ResourceType.BROKER, "kafka-cluster"), (ResourceType.TOPIC, "*"))
    ]  # fmt: skip
    for made in place.admin.create_acls(rights).values():
        made.result(10)
    own = place.broker.user("root-of-kafka")
    await_written(own)
    for _ in range(2):
        done = place.access("--only-declared", settings=own)
        assert done.returncode == 0, done.stdout
    place.declare()
    refused = place.access("--only-declared", settings=own)
    assert (refused.returncode, len(refused.stdout.splitlines())) in ((1, 1), (2, 1)), refused.stdout


def test_a_user_without_rights_may_not_even_look(place: Place) -> None:
    refused = place.access("--dry-run", settings=place.broker.user("kafka-generator"))
    assert (refused.returncode, len(refused.stdout.splitlines())) == (1, 1), refused.stdout
    assert "do not tell their users and rights: that is for their administrators" in refused.stdout


def test_a_filter_that_may_not_read_its_outputs_says_so(place: Place) -> None:
    """A start looks there for what is decided."""
    outputs = [getattr(load(), name) for name in output_topics(load())]
    timestamps = {"message.timestamp.type": "LogAppendTime"}
    for made in place.admin.create_topics([NewTopic(name, 1, config=timestamps) for name in outputs]).values():
        made.result(10)
    for changed in place.admin.incremental_alter_configs([_with_append_times(TOPIC)]).values():
        changed.result(10)
    settings = place.broker.user("kafka-filter")
    reader = WrittenDecisions(settings)
    reader.follow("", {0: 0})
    assert not reader.settle(Stop(1))
    reader.close()
    reads = AclBindingFilter(
        ResourceType.TOPIC, outputs[0], ResourcePatternType.LITERAL, "User:kafka-filter", "*",
        AclOperation.READ, AclPermissionType.ALLOW,
    )  # fmt: skip
    for gone in place.admin.delete_acls([reads]).values():
        assert len(gone.result(10)) == 1
    reader.follow("", {0: 0})
    with pytest.raises(UsageError, match=f"topic {outputs[0]!r} can't be read: .* let the filter's user READ it"):
        reader.settle(Stop(1))
    reader.close()


def _with_append_times(topic: str) -> ConfigResource:
    change = ConfigEntry("message.timestamp.type", "LogAppendTime", incremental_operation=AlterConfigOpType.SET)
    return ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
