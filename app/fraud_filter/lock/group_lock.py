"""The lock of a checkpoint that no kernel can lock: the holder in a Kafka group, which any machine can join."""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka.errors import GroupAuthorizationFailedError, InvalidSessionTimeoutError, KafkaError

from fraud_filter.checkpoint.files import CheckpointError, CheckpointFiles
from fraud_filter.config import Settings, refused
from fraud_filter.errors import UsageError
from fraud_filter.lock.guard import Guard
from fraud_filter.lock.lock import Lock, refusal
from fraud_filter.lock.membership import Membership
from fraud_filter.lock.shared_disk import make_id, read_id

_log = logging.getLogger(__name__)
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
            self._member = self._acquire(self._group(files), stopping)
        member, guard = self._member, Guard(pid, self._member.deadline)
        self._guard = guard
        member.watch(lambda: guard.extend(member.deadline), guard.kill)
        guard.extend(member.deadline)
        if self._shared:
            threading.Thread(target=self._watch_id, args=(guard,), name="checkpoint-id", daemon=True).start()

    def take(self, files: CheckpointFiles) -> bool:
        """As `Lock.take`: a member of the group that waits for its turn. `hold` is to follow."""
        if self._member:
            return True
        if self._waiting is None:
            self._waiting = self._join(self._group(files))
        try:
            with self._explained():
                is_ours = self._waiting.try_acquire()
        except (UsageError, CheckpointError):
            self._leave()
            raise
        if is_ours:
            self._member, self._waiting = self._waiting, None
            _log.info("event=checkpoint_locked checkpoint=%s", self._settings.checkpoint)
        return is_ours

    def release(self) -> None:
        """As `Lock.release`."""
        self._unguard()
        self._leave()

    def close(self) -> None:
        """To be called when the last process has ended."""
        self._closing.set()
        self._unguard()
        self._leave()

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

    def _acquire(self, group: str, stopping: Callable[[], bool]) -> Membership:
        settings = self._settings
        member = self._join(group)
        held_by: str | None = None
        try:
            with self._explained():
                held_by = member.acquire(settings.checkpoint_lock_timeout_s + settings.kafka_timeout_s, stopping)
        finally:
            if held_by != "":
                member.close()
        if held_by is None:
            raise self._unavailable("no answer of their group coordinator")
        if held_by:
            raise UsageError(f"{self._named_by}: {refusal(self._who, held_by, settings.checkpoint)}")
        _log.info("event=checkpoint_locked checkpoint=%s group=%s", settings.checkpoint, group)
        return member

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
