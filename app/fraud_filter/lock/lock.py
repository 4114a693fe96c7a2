"""What every lock of a checkpoint can do."""

from __future__ import annotations

from collections.abc import Callable

from fraud_filter.checkpoint.files import CheckpointFiles


class Lock:
    """The lock of a checkpoint: one that is held already, or none."""

    #: Seconds between two looks of a standby.
    look_s = 0.05

    def __init__(self, descriptor: int | None = None) -> None:
        """`descriptor`: an open file for Spark's Java process to hold, too."""
        self.descriptor = descriptor

    @property
    def lost(self) -> str:
        """Why it is not ours any more, after it was."""
        return ""

    def renew(self) -> None:
        """Has `descriptor` be one that can be locked; to be called before each start of a Java process."""

    def hold(self, files: CheckpointFiles, stopping: Callable[[], bool] = lambda: False) -> None:
        """To be called before anything in the Java process behind `files` writes; `stopping` ends a wait."""

    def take(self, files: CheckpointFiles) -> bool:  # noqa: ARG002 - what another lock needs to know its name
        """Whether it is ours by now, for a standby that asks every `look_s` seconds; never waits for its holder.

        Raises:
            UsageError: Kafka's brokers don't allow it.
            CheckpointError: they don't answer.
        """
        return True

    def release(self) -> None:
        """Gives it up, so that another can `take` it; to be called when the Java process behind `files` has ended."""


def refusal(who: str, holder: str, location: str) -> str:
    """What is told to who comes second."""
    article = "another" if holder.startswith(who) else "a"
    return f"{article} {holder} works on {location!r}; stop it, or take another location"
