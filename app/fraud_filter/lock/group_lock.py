"""The lock of a checkpoint that no kernel can lock: the holder in a Kafka group, which any machine can join.

Kafka's brokers keep who is a member, and remove one from whom no heartbeat came for the session timeout S; members of
our own protocol (as those of Connect have theirs) agree on the holder at each change of members:

- The leader, which the brokers choose, names the holder: the member that says it is the holder already, else itself.
- The holder counts its time from when it sent the last heartbeat that the brokers took: until two thirds of S are over.
  They count S from when it came, which is later, and take the holder's place from it no earlier: a change of members
  waits for it at least as long, as the rebalance timeout is S, too. So between a holder's end and the next one's
  beginning lies a third of S, as long as clocks run equally fast.
- A coordinator that is cut off from the other brokers takes heartbeats still, while another one has its place. So each
  heartbeat of the holder counts when an offset is committed after it: enough brokers have written it.
- One that they don't know any more has lost it, whatever its clock says.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import kafka.errors
from kafka.admin import KafkaAdminClient
from kafka.coordinator.base import BaseCoordinator
from kafka.errors import GroupAuthorizationFailedError, InvalidSessionTimeoutError, KafkaError
from kafka.protocol.consumer import OffsetCommitRequest

from fraud_filter.checkpoint.files import CheckpointError, CheckpointFiles
from fraud_filter.config import Settings, refused
from fraud_filter.errors import UsageError
from fraud_filter.kafka.client import kafka_python_config
from fraud_filter.lock.checkpoint_lock import Lock, make_id, read_id, refusal
from fraud_filter.lock.guard import Guard, now
from fraud_filter.text.logs import get_logger

#: Of several brokers a dead one is noticed after 9 s (`broker.session.timeout.ms`), and replaced after 15 at most.
_SEVERAL_S = 30.0

#: Shares of the session timeout.
_HEARTBEATS, _HELD = 1 / 10, 2 / 3

_TURN_S = 0.2

_LEAVE_MS = 2000

for _name in ("kafka.cluster", "kafka.coordinator", "kafka.net"):
    # Each second of an outage they tell of it as errors; what comes of it is told by us.
    logging.getLogger(_name).setLevel(logging.CRITICAL)


class _Member(BaseCoordinator):  # type: ignore[misc]  # the library has no types
    """The library's member of any group, with our protocol. Its own thread sends the heartbeats."""

    def __init__(self, client: Any, name: str, topic: str, **config: Any) -> None:
        super().__init__(client, **config)
        self._name = name
        self._topic = topic
        #: Our id when we became the holder; "" before.
        self.held_as = ""
        #: When the newest heartbeat that was taken was sent, in seconds of `now`, while we are the holder.
        self.taken_at: float | None = None
        self.on_confirmed: Callable[[], None] = lambda: None
        self.holder, self.holder_name = "", ""

    @property
    def id(self) -> str:
        """What the brokers call us; "" when we are no member."""
        return str(self._generation.member_id)

    def protocol_type(self) -> str:
        return "fraud-filter-lock"

    def group_protocols(self) -> list[tuple[str, bytes]]:
        said = {"name": self._name, "holds": self.held_as != "" and self.held_as == self.id}
        return [("1", json.dumps(said).encode())]

    def _perform_assignment(self, leader_id: str, _protocol: str, members: Sequence[Any]) -> dict[str, bytes]:
        said = {member.member_id: json.loads(member.metadata) for member in members}
        holder = next((member for member, words in said.items() if words["holds"]), leader_id)
        answer = json.dumps({"holder": holder, "name": said[holder]["name"]}).encode()
        return dict.fromkeys(said, answer)

    async def _on_join_complete_async(self, _generation: int, member_id: str, _protocol: str, assigned: bytes) -> None:
        answer = json.loads(assigned)
        self.holder, self.holder_name = answer["holder"], answer["name"]
        if self.holder == member_id and not self.held_as:
            self.held_as = member_id
        self.heartbeat.fail_heartbeat()  # the next one at once, as the holder's time begins with it
        self._heartbeat_wakeup.notify()

    async def _send_heartbeat_request(self) -> None:
        sent, member = now(), self.id
        self.heartbeat.poll()  # we never leave because nobody asks for records
        await super()._send_heartbeat_request()  # raises whatever is not taken, a change of members included
        if member == self.held_as == self.holder:
            await self._commit()
            self.taken_at = sent
            self.on_confirmed()

    async def _commit(self) -> None:
        """Commits "no offset" (-1). Where the topic is not there, or not ours to read, the heartbeat counts alone."""
        one = OffsetCommitRequest.OffsetCommitRequestTopic
        at = one.OffsetCommitRequestPartition(partition_index=0, committed_offset=-1, committed_metadata="")
        request = OffsetCommitRequest(
            max_version=8, group_id=self.group_id, generation_id_or_member_epoch=self._generation.generation_id,
            member_id=self.id, group_instance_id=None, topics=[one(name=self._topic, partitions=[at])],
        )  # fmt: skip
        answer = await self._manager.send(request, node_id=self.coordinator_id)
        error = kafka.errors.for_code(answer.topics[0].partitions[0].error_code)
        no_topic = (kafka.errors.TopicAuthorizationFailedError, kafka.errors.UnknownTopicOrPartitionError)
        if error is not kafka.errors.NoError and error not in no_topic:
            raise error()


class Membership:
    """Our membership in `group`; to be closed when what the holder alone may do has ended."""

    def __init__(self, settings: Settings, group: str, name: str) -> None:
        """Connects.

        Args:
            settings: how to reach the brokers, and `checkpoint_lock_timeout_s`.
            group: the group's id.
            name: what we are, for those who come second.

        Raises:
            KafkaError: no broker answers within `kafka_timeout_s` seconds.
            UsageError: name, password, certificate or key are missing or can't be used; or the timeout is too short.
        """
        timeout_ms = round(settings.checkpoint_lock_timeout_s * 1000)
        self._held_s = settings.checkpoint_lock_timeout_s * _HELD
        own = {
            "client_id": "fraud-filter-lock",
            "request_timeout_ms": round(timeout_ms / 5),
            "reconnect_backoff_max_ms": 1000,
            "bootstrap_timeout_ms": round(settings.kafka_timeout_s * 1000),
        }
        self._client: Any = KafkaAdminClient(**kafka_python_config(settings) | own)
        if len(self._client._manager.cluster.brokers()) > 1 and settings.checkpoint_lock_timeout_s < _SEVERAL_S:
            self._client.close()
            raise refused(
                "checkpoint_lock_timeout_s", settings.checkpoint_lock_timeout_s,
                "is too short for several brokers, which take 15 s to replace a dead one",
                f"give {_SEVERAL_S:g} or more",
            )  # fmt: skip
        self._member = _Member(
            self._client._client,
            name,
            settings.input_topic if settings.source == "kafka" else settings.flagged_topic,
            group_id=group,
            session_timeout_ms=timeout_ms,
            max_poll_interval_ms=timeout_ms,
            heartbeat_interval_ms=round(timeout_ms * _HEARTBEATS),
            request_timeout_ms=own["request_timeout_ms"],
            api_version=self._client._manager.broker_version,
        )
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="checkpoint-lock", daemon=True)
        self._on_lost: Callable[[], None] = lambda: None
        self._lost = ""

    @property
    def deadline(self) -> float:
        """Until when we are the holder, as far as is known by now; in seconds of `now`."""
        taken_at = self._member.taken_at
        return -1.0 if taken_at is None else taken_at + self._held_s

    @property
    def lost(self) -> str:
        """Why we are the holder no more, after we were; "" while we are. It stays so."""
        self._lost = self._lost or self._judge()
        return self._lost

    def acquire(self) -> str | None:
        """Takes part in a change of members, if there is one, as one that asks again and again.

        Returns:
            "" when we are the holder, the name of the one that is, None while neither is known.

        Raises:
            KafkaError: the brokers refuse.
        """
        member = self._member
        if self._turn() and member.holder != member.id:
            return member.holder_name
        if member.taken_at is None:  # the brokers have not confirmed it yet
            return None
        self._thread.start()
        return ""

    def watch(self, confirmed: Callable[[], None], lost: Callable[[], None]) -> None:
        """Has `confirmed` called when `deadline` has moved, and `lost` once, as soon as that is known."""
        self._member.on_confirmed = confirmed
        self._on_lost = lost

    def close(self) -> None:
        """Leaves the group."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()
        with suppress(KafkaError, RuntimeError):
            self._member.close(timeout_ms=_LEAVE_MS)
        self._client.close()

    def _judge(self) -> str:
        member = self._member
        if member.id != member.held_as or member.holder != member.held_as:
            return "the Kafka brokers have taken it from this program, which they had not heard of in time"
        if now() >= self.deadline:
            return f"no Kafka broker has confirmed it for {self._held_s:g} s"
        return ""

    def _turn(self) -> bool:
        """Takes part in a change of members, if there is one; whether we are a member."""
        self._member.poll_heartbeat()
        return bool(self._member.ensure_active_group(timeout_ms=_TURN_S * 1000))

    def _run(self) -> None:
        while not self._closing.wait(_TURN_S):
            if self.lost:
                self._on_lost()
                return
            with suppress(KafkaError):  # time tells
                self._turn()


_log = get_logger(__name__)

_PREFIX = "fraud-filter-lock-"

#: What an HDFS location without a port means.
_HDFS_PORT = 8020


class GroupLock(Lock):
    """Held while the brokers hear of us. Java, which writes the checkpoint, is killed before another can have it."""

    #: The brokers need seconds to know that a holder is gone.
    look_s = 0.5

    def __init__(self, settings: Settings, who: str, named_by: str, shared: Path | None = None) -> None:
        """As `checkpoint_lock`; `shared` is the checkpoint's directory where it is one of a shared file system."""
        super().__init__()
        self._shared = shared
        self._id = ""
        self._closing = threading.Event()
        self._settings = settings
        self._who = who
        self._named_by = named_by
        self._member: Membership | None = None
        self._waiting: Membership | None = None
        self._guard: Guard | None = None

    @property
    def lost(self) -> str:
        """Why it is not ours any more, after it was."""
        reason = self._member.lost if self._member else ""
        if self._id and self._shared and read_id(self._shared) != self._id:
            reason = f"its id in {self._shared} was removed or replaced"
        return f"the lock of the checkpoint {self._settings.checkpoint!r} is lost: {reason}" if reason else ""

    def hold(self, files: CheckpointFiles, stopping: Callable[[], bool] = lambda: False) -> None:
        """Takes the lock, where it is not ours yet, and has a guard look after Java; the process before has ended.

        Waits for `checkpoint_lock_timeout_s` where a holder is gone without a word.

        Raises:
            UsageError: another program holds it, or Kafka's brokers don't allow it.
            CheckpointError: they don't answer.
        """
        pid = files.pid
        if self._guard and self._guard.pid == pid and not self.lost:
            return
        self._unguard()
        if self._member is None or self._member.lost:
            self._leave()
            self._acquire(files, stopping)
        member = self._member
        assert member  # noqa: S101 - it was acquired
        guard = Guard(pid, member.deadline)
        self._guard = guard
        member.watch(lambda: guard.extend(member.deadline), guard.kill)
        guard.extend(member.deadline)
        if self._shared:
            threading.Thread(target=self._watch_id, args=(guard,), name="checkpoint-id", daemon=True).start()

    def take(self, files: CheckpointFiles) -> bool:
        """As `Lock.take`: a member of the group that waits for its turn. `hold` is to follow."""
        return self._member is not None or self._ask(files) == ""

    def release(self) -> None:
        """As `Lock.release`."""
        self._unguard()
        self._leave()

    def close(self) -> None:
        """To be called when the last process has ended."""
        self._closing.set()
        self.release()

    def _group(self, files: CheckpointFiles) -> str:
        if self._shared is None:
            return group_of(files.qualified)
        self._id = make_id(self._shared)
        return group_of(f"shared://{self._id}")

    def _watch_id(self, guard: Guard) -> None:
        """A thread of its own: a look at a file system of the network may hang."""
        while self._guard is guard and not self._closing.wait(1):
            if self.lost:
                guard.kill()
                return

    def _join(self, group: str) -> Membership:
        try:
            return Membership(self._settings, group, f"{self._who} (process {os.getpid()} on {platform.node()})")
        except (KafkaError, OSError, ValueError) as error:
            raise self._unavailable(str(error)) from None

    def _ask(self, files: CheckpointFiles) -> str | None:
        """One turn as a member of the group; returns as `Membership.acquire`."""
        if self._waiting is None:
            self._waiting = self._join(self._group(files))
        try:
            with self._explained():
                held_by = self._waiting.acquire()
        except (UsageError, CheckpointError):
            self._leave()
            raise
        if held_by == "":
            self._member, self._waiting = self._waiting, None
            _log.info("checkpoint_locked", checkpoint=self._settings.checkpoint)
        return held_by

    def _acquire(self, files: CheckpointFiles, stopping: Callable[[], bool]) -> None:
        """Waits until one that is gone without a word counts as gone."""
        settings = self._settings
        end = time.monotonic() + settings.checkpoint_lock_timeout_s + settings.kafka_timeout_s
        held_by: str | None = None
        while held_by is None and time.monotonic() < end and not stopping():
            held_by = self._ask(files)
            if held_by is None:
                time.sleep(_TURN_S / 4)
        if held_by == "":
            return
        self._leave()
        if held_by is None:
            raise self._unavailable("no answer of their group coordinator")
        raise UsageError(f"{self._named_by}: {refusal(self._who, held_by, settings.checkpoint)}")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """What the brokers refuse, as errors to act on."""
        settings = self._settings
        try:
            yield
        except GroupAuthorizationFailedError:
            raise UsageError(
                f"{self._named_by}: {settings.checkpoint!r} can't be locked: Kafka's user "
                f"{settings.kafka_sasl_username!r} lacks READ on the groups {_PREFIX}*; give it that right, as "
                "kafka/access.yml does"
            ) from None
        except InvalidSessionTimeoutError:
            raise refused(
                "checkpoint_lock_timeout_s", settings.checkpoint_lock_timeout_s, "is not accepted by the brokers",
                "give seconds within their group.min.session.timeout.ms and group.max.session.timeout.ms",
            ) from None  # fmt: skip
        except KafkaError as error:
            raise self._unavailable(str(error)) from None

    def _unavailable(self, reason: str) -> CheckpointError:
        return CheckpointError(
            f"checkpoint {self._settings.checkpoint}: the Kafka brokers at {self._settings.kafka_bootstrap_servers!r} "
            f"(KAFKA_BOOTSTRAP_SERVERS) do not give its lock: {reason}"
        )

    def _unguard(self) -> None:
        if self._guard:
            if self._member:
                self._member.watch(lambda: None, lambda: None)
            self._guard.close()
            self._guard = None

    def _leave(self) -> None:
        for member in (self._member, self._waiting):
            if member:
                member.close()
        self._member = self._waiting = None


def group_of(qualified: str) -> str:
    """The group for a checkpoint, by its location as Hadoop qualifies it; for a local path, on this machine alone."""
    scheme, _, rest = qualified.rstrip("/").partition(":")
    place, slash, path = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest)
    place = platform.node() if scheme == "file" else place.lower()
    if scheme == "hdfs" and ":" not in place:
        place = f"{place}:{_HDFS_PORT}"
    return _PREFIX + hashlib.sha256(f"{scheme}://{place}{slash}{path}".encode()).hexdigest()[:32]
