"""Rollback after a handover: the former filter, which waits warm, takes over again when a user asks for it."""

from __future__ import annotations

import time
from collections.abc import Callable

from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.checkpoint.notes import ACTIVE, Note
from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.supervisor.handover import ROLLBACK, Inbox, Request, When

FORMER: Note[dict[str, str]] = Note("former", dict[str, str], {})
#: A filter that waits looks each second, and so do we; on a busy machine it takes longer.
_ANSWER_S = 15.0
_LOOK_S = 0.2


def note_former(files: CheckpointFiles, filter_id: str) -> None:
    """Notes, before the lock is given up, who hands over; "" where that one will not wait. No filter is active then.

    Raises:
        CheckpointError: the file system refuses.
    """
    FORMER.write(files, {"id": filter_id})
    files.remove(ACTIVE.path)


def roll_back(files: CheckpointFiles, settings: Settings, when: When, say: Callable[[str], None]) -> None:
    """Has the former filter take over again, and waits until its query runs.

    Args:
        files: of the checkpoint; our own Java reads and writes them.
        settings: `checkpoint` and `start_timeout_s` count.
        when: when the active filter is to end.
        say: is told what is waited for.

    Raises:
        UsageError: no former filter waits, warm; nothing was changed.
        FraudFilterError: it gave up waiting, or did not start.
        CheckpointError: the checkpoint's file system refuses.
    """
    former = _read_former(files)
    if not former:
        raise _refused(settings)
    request, answer = Request(files, when, former, ROLLBACK), Inbox(files, of=former)
    has_asked, until = False, time.monotonic() + _ANSWER_S
    try:
        while True:
            request.renew()
            asks = answer.look() is not None
            if _read_former(files) != former:  # the active one has handed over in turn
                break
            if asks:
                if not has_asked:
                    say("the former filter is warm and asks the running one to end, " + _in_words(when))
                has_asked, until = True, time.monotonic() + _ANSWER_S
            elif time.monotonic() > until:
                if has_asked:
                    raise FraudFilterError(
                        "the former filter no longer waits (its log says why): the running one goes on"
                    )
                raise _refused(settings)
            time.sleep(_LOOK_S)
    finally:
        request.withdraw()
    until = time.monotonic() + settings.start_timeout_s
    while not files.exists(ACTIVE.path):
        if time.monotonic() > until:
            raise FraudFilterError(
                f"the running filter has ended, and the former one did not start within {settings.start_timeout_s:g} s "
                "(setting start_timeout_s, FRAUD_START_TIMEOUT_S): see its log"
            )
        time.sleep(_LOOK_S)


def _read_former(files: CheckpointFiles) -> str:
    return FORMER.read(files).get("id", "")


def _in_words(when: When) -> str:
    return "at once" if when == "now" else "at its next commit (in real-time mode within real_time_duration)"


def _refused(settings: Settings) -> UsageError:
    return UsageError(
        f"argument --rollback: no former filter waits, warm, at {settings.checkpoint!r}: call `fraud-filter "
        "handover` with its settings; a filter that was started with --standby waits after a handover, once it is warm"
    )
