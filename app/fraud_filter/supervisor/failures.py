"""Why a query ended, and whether starting it again can help."""

from __future__ import annotations

import random
import re
from typing import Any, Literal, get_args

from fraud_filter.config import Settings, named
from fraud_filter.errors import EXIT_DATA_LOSS, EXIT_GAVE_UP, FraudFilterError, UsageError

Reason = Literal[
    "query-failed",  # Spark ended the query with an error: a task failed, an executor was lost, …
    "query-ended",  # it ended without one
    "java-gone",  # Spark's Java process died, or does not start
    "stalled",  # input grows, progress does not
    "start-hung",  # the start took longer than start_timeout_s
    "broker-away",  # no broker answered at a restart
    "spark-away",  # no session at a restart: the master is away
    "partitions-added",  # the input topic has partitions that the running tasks do not read
    "topic-recreated",  # the input topic has another id than when the query started
    "transaction-open",  # at a start: before what was committed without regard to transactions
    "checkpoint-away",  # the checkpoint's file system refused at a restart
    "lock-lost",  # of the checkpoint: Kafka's brokers had not heard of us in time, or its file was removed
    "handed-over",  # another filter works now; this one, started as a standby, waits again
    "slots-lacking",  # executors were lost: of a pair the other one, which has its own, goes on meanwhile
    "state-unreadable",  # the state of features: it is made again from the input topic
    "slots-back",  # executors were lost: the query starts again once there are enough task slots
]
REASONS: tuple[Reason, ...] = get_args(Reason)
#: Something else must come back first: no restart of this program helps.
AWAY: frozenset[Reason] = frozenset({"broker-away", "spark-away", "checkpoint-away", "transaction-open"})
#: The query alone must start again, unless that repeats: executors were lost, or partitions added.
OUTLIVED_BY_JAVA: frozenset[Reason] = frozenset({"partitions-added", "slots-back", "slots-lacking"})


class RestartableError(FraudFilterError):
    """The query has to be started again from its checkpoint; `reason` is a label of the restarts' metric."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason: Reason = reason


class GaveUpError(FraudFilterError):
    """Too many restarts without progress. Exit code 4."""

    exit_code = EXIT_GAVE_UP


class DataLossError(FraudFilterError):
    """Unread records are gone from the topic, and `fail_on_data_loss` is set. Exit code 3."""

    exit_code = EXIT_DATA_LOSS


#: Share of the first back-off by which each is lengthened at random: filters that failed together return apart.
_JITTER = 0.5
#: Seconds of the longest back-off, where the first one is not longer.
_LONGEST_S = 30.0
#: Doubled so often a back-off is longer than any limit.
_MOST_DOUBLINGS = 30


def back_off_s(settings: Settings, failures: int, error: RestartableError) -> float:
    """Seconds to wait after a run that ended with `error`; they double with each of the `failures` in a row.

    Raises:
        GaveUpError: `max_restarts` restarts in a row brought no progress.
    """
    if failures > settings.max_restarts:
        raise GaveUpError(
            f"gave up after {settings.max_restarts} restarts in a row without progress (setting max_restarts, "
            f"FRAUD_MAX_RESTARTS); the last: {error}"
        )
    first = settings.restart_backoff_s
    doubled = first * float(2 ** min(failures - 1, _MOST_DOUBLINGS))
    return min(doubled + random.uniform(0, first * _JITTER), max(_LONGEST_S, first))


#: Where a dying Java still takes the connection, py4j has no answer to quote, or finds nothing that it looks for.
_NO_ANSWER = re.compile(r"An error occurred while calling \S+|\S+ does not exist in the JVM")

#: What to do about lost records.
GO_ON_WITHOUT = f"to go on without them, give false to the {named('fail_on_data_loss')}"
#: Spark's Kafka source with `failOnDataLoss`, in every mode.
_LOST = re.compile(r"Some data may have been lost.*?\nReason: (.+?)(?=\n|$)", re.DOTALL)
#: Spark's conditions of a state that it can't load. Damage that it has no condition for is found by a search in vain.
_STATE = re.compile(
    r"CANNOT_LOAD_STATE_STORE(?!\.\w+_OUT_OF_MEMORY)|CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED"
    r"|STATE_STORE_(ROW_CHECKSUM|BASE_CHECKPOINT_ID|KEY|VALUE|INVALID)_\w+|STREAMING_STATEFUL_OPERATOR_\w+"
)
#: What no restart cures, by what Spark says, and what it means to the user. Anything else is tried again.
_INCURABLE = (
    (
        re.compile(r"CONCURRENT_STREAM_LOG_UPDATE|Multiple streaming jobs detected"),
        "another query works on the checkpoint {checkpoint!r}: stop it, or give one of them another --checkpoint",
    ),
    (
        re.compile(
            r"There are \[\d+\] sources in the checkpoint"
            r"|watermarkTracker\(\)\S* is null"
            r"|Expected e\.g\. \{\"topicA\"|STREAM_FAILED.*CHECKPOINT_METADATA"
        ),
        "the checkpoint {checkpoint!r} was made by another query or mode and can't be gone on from: give the "
        f"{named('checkpoint')} that query's own location, or a new one",
    ),
    (
        re.compile(
            r"org\.apache\.spark\.sql(\.\w+)*\.(ExtendedAnalysisException|AnalysisException|ParseException)"
            r"|does not support (continuous|microbatch) processing|does not support async progress tracking"
            r"|STREAMING_REAL_TIME_MODE\.\w+|UNSUPPORTED_FEATURE\.STORE_BACKEND_\w+"
        ),
        "Spark refuses the query in {mode} mode",
    ),
)  # fmt: skip


def explain_failure(error: Any, settings: Settings) -> FraudFilterError:
    """What ended a running query, as an error to act on. Call it while Spark's Java process still runs.

    Returns:
        A `RestartableError`; a `DataLossError` or a `UsageError` when no restart can help.
    """
    from py4j.protocol import Py4JNetworkError

    if isinstance(error, Py4JNetworkError | OSError) or _NO_ANSWER.fullmatch(str(error)):
        return RestartableError("java-gone", f"Spark's Java process is gone in {settings.mode} mode")
    text = str(error)
    for sign, meaning in _INCURABLE:
        if sign.search(text):
            what = meaning.format(checkpoint=settings.checkpoint, mode=settings.mode)
            return UsageError(f"{what}; Spark says: {cause(text)}")
    lost = _LOST.search(text)
    if lost and settings.fail_on_data_loss:
        topic = settings.input_topic
        return DataLossError(f"unread records of the topic {topic!r} are gone; Spark says: {lost[1]}; {GO_ON_WITHOUT}")
    if found := _STATE.search(text + str(getattr(error, "_stackTrace", ""))):  # PySpark leaves the causes out
        return RestartableError("state-unreadable", f"the state of the features can't be read: {found[0]}")
    return RestartableError("query-failed", f"the query failed in {settings.mode} mode: {cause(text)}")


def cause(text: str) -> str:
    """The innermost reason that Spark gives, without its stack trace."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return causes[-1] if causes else lines[0] if lines else "no reason given"
