"""Membership in a Kafka group of which one member at a time is the holder. Knows nothing of checkpoints.

Kafka's brokers keep who is a member, and remove one from whom no heartbeat came for the session timeout S; members of
our own protocol (as those of Connect have theirs) agree on the holder at each change of members:

- The leader, which the brokers choose, names the holder: the member that says it is the holder already, else itself.
- The holder counts its time from when it sent the last heartbeat that the brokers took: until two thirds of S are over.
  They count S from when it came, which is later, and take the holder's place from it no earlier: a change of members
  waits for it at least as long, as the rebalance timeout is S, too. So between a holder's end and the next one's
  beginning lies a third of S, as long as clocks run equally fast.
- One that they don't know any more has lost it, whatever its clock says.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.coordinator.base import BaseCoordinator
from kafka.errors import KafkaError

from fraud_filter.config import Settings
from fraud_filter.kafka.client import kafka_python_config
from fraud_filter.lock.guard import now

#: Shares of the session timeout.
_HEARTBEATS, _HELD = 1 / 10, 2 / 3
_TURN_S = 0.2
_LEAVE_MS = 2000
for _name in ("kafka.cluster", "kafka.coordinator", "kafka.net"):
    # Each second of an outage they tell of it as errors; what comes of it is told by us.
    logging.getLogger(_name).setLevel(logging.CRITICAL)


class _Member(BaseCoordinator):  # type: ignore[misc]  # the library has no types
    """The library's member of any group, with our protocol. Its own thread sends the heartbeats."""

    def __init__(self, client: Any, name: str, **config: Any) -> None:
        super().__init__(client, **config)
        self._name = name
        #: Our id when we became the holder; "" before.
        self.held_as = ""
        #: When the newest heartbeat that was taken was sent, in seconds of `now`, while we are the holder.
        self.taken_at: float | None = None
        self.tell: Callable[[], None] = lambda: None
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
            self.taken_at = sent
            self.tell()


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
            UsageError: name, password, certificate or key are missing or can't be used.
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
        self._member = _Member(
            self._client._client,
            name,
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

    def acquire(self, timeout_s: float, stopping: Callable[[], bool]) -> str | None:
        """Becomes the holder; waits until one that is gone without a word counts as gone.

        Args:
            timeout_s: the longest wait, in seconds.
            stopping: ends the wait.

        Returns:
            "" when we are the holder, the name of the one that is, None when the wait was in vain.

        Raises:
            KafkaError: the brokers refuse.
        """
        end = time.monotonic() + timeout_s
        while time.monotonic() < end and not stopping():
            is_member = self._turn()
            if is_member and self._member.holder != self._member.id:
                return self._member.holder_name
            if self._begin():
                return ""
            time.sleep(_TURN_S / 4)
        return None

    def try_acquire(self) -> bool:
        """Waits for its turn, as one that asks again and again: whether we are the holder by now.

        Raises:
            KafkaError: the brokers refuse.
        """
        self._turn()
        return self._begin()

    def watch(self, confirmed: Callable[[], None], lost: Callable[[], None]) -> None:
        """Has `confirmed` called when `deadline` has moved, and `lost` once, as soon as that is known."""
        self._member.tell = confirmed
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

    def _begin(self) -> bool:
        """Begins to keep what we hold, once the brokers have confirmed it; whether they have."""
        if self._member.taken_at is None:
            return False
        self._thread.start()
        return True

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
