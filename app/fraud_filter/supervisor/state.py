"""The state of features: whether the checkpoint's fits the query, and how it is made again from the input topic.

A feature looks at payments of a bounded time before its own. So a state follows from the topic: the query begins so far
before the committed offsets, with an empty state, and writes nothing about payments that are decided. This is the one
way to a state that is lost, can't be read, or was made for something else.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime

from fraud_filter.checkpoint.contents import read_contents
from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.checkpoint.notes import INPUT, STATE, KeptState, note_state
from fraud_filter.checkpoint.plan import Remove, Step, Write
from fraud_filter.checkpoint.progress import Offsets
from fraud_filter.checkpoint.repair import restart
from fraud_filter.config import Settings, refused
from fraud_filter.kafka.consumer import CLOCKS_MS, first_times_ms, reach_back
from fraud_filter.query.preflight import Inputs
from fraud_filter.rules.features import reach_ms
from fraud_filter.supervisor.failures import GO_ON_WITHOUT
from fraud_filter.supervisor.losses import Comparison
from fraud_filter.text.logs import get_logger

_log = get_logger(__name__)


def wanted_state(inputs: Inputs, settings: Settings) -> KeptState | None:
    """What the query's state is to be made for; None where it keeps none."""
    features = [json.loads(json.dumps(feature.described)) for feature in inputs.query.features]
    return KeptState(features, inputs.state_partitions, settings.velocity_payments) if features else None


def find_misfit(files: CheckpointFiles, wanted: KeptState | None) -> str:
    """Why the state of the checkpoint is not the one of a query that wants this; "" where it is.

    Raises:
        UsageError: what is kept can't be read.
        CheckpointError: the file system refuses.
    """
    kept = STATE.read(files)
    if kept is None or wanted is None:
        return "" if kept == wanted else "features were added" if wanted else "features were removed"
    if kept.features != wanted.features:
        old, new = ({str(feature[0]): feature for feature in state.features} for state in (kept, wanted))
        changed = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
        return f"features changed: {', '.join(changed) or 'their order'}"
    if kept != wanted:
        numbers = {
            "velocity_partitions": (kept.partitions, wanted.partitions),
            "velocity_payments": (kept.payments, wanted.payments),
        }
        return ", ".join(f"{name} is {now} and was {was}" for name, (was, now) in numbers.items() if was != now)
    contents = read_contents(files)
    return "the state is gone" if contents.committed is not None and not contents.stateful else ""


def require_fit(files: CheckpointFiles, inputs: Inputs, settings: Settings) -> None:
    """Notes the state of a new checkpoint over a source that can't be read again.

    Raises:
        UsageError: the checkpoint's state is not that of the query.
        CheckpointError: the file system refuses.
    """
    wanted = wanted_state(inputs, settings)
    why = find_misfit(files, wanted)
    if why and read_contents(files).offsets:
        raise refused(
            "checkpoint", settings.checkpoint, f"has the state of another query: {why}", "give a new location"
        )
    if why:
        note_state(files, wanted)


def rebuild_state(files: CheckpointFiles, inputs: Inputs, settings: Settings, found: Comparison, why: str) -> None:
    """Has the query begin again with an empty state, so far before what is committed as features look back.

    Args:
        found: the checkpoint, which says where the query was, beside the topic; no filter decides meanwhile.
        why: for the log.

    Raises:
        UsageError: the topic does not hold the payments that features look at, or nothing proves what is decided.
        FraudFilterError: the file system or a broker refuses.
    """
    wanted = wanted_state(inputs, settings)
    at = look_back(inputs, settings, found)
    kept = found.kept
    steps: list[Step] = [Write(STATE.path, STATE.content(wanted)) if wanted else Remove(STATE.path)]
    if kept and not found.recreated:
        steps.append(Write(INPUT.path, INPUT.content(replace(kept, restart=at, decided=found.undecided))))
    restart(files, settings, steps, why)
    if wanted:
        payments = sum(found.undecided[number] - offset for number, offset in at.items())
        _log.warning("rebuilding_state", query=settings.query_name, payments=payments, reason=why)
    else:
        _log.warning("state_dropped", mode=settings.mode, reason=why)


def look_back(inputs: Inputs, settings: Settings, found: Comparison) -> Offsets:
    """Where in each partition the payments begin that features of undecided payments look at.

    Raises:
        UsageError: some of them are gone from the topic, and `fail_on_data_loss` is on.
        FraudFilterError: the broker does not answer.
    """
    undecided = found.undecided
    if not inputs.query.features or found.recreated:
        return undecided
    times, reach = first_times(settings, found), reach_ms(inputs.query.features)
    at: Offsets = {}
    for number, first in reach_back(settings, undecided, times, reach).items():
        began, low = found.kept.begin.get(number, 0) if found.kept else 0, found.bounds[number][0]
        at[number] = min(max(first, began), undecided[number])
        # What was removed was appended before the first record that is left, perhaps within the windows.
        if settings.fail_on_data_loss and low > began and at[number] <= low:
            raise _gone(settings, number, low, times[number] - reach)
    return at


def first_times(settings: Settings, found: Comparison) -> dict[int, int]:
    """The append time (ms since 1970) of the first undecided payment by partition; about now where none is there.

    Raises:
        FraudFilterError: the broker does not answer.
    """
    now_ms = round(time.time() * 1000) - CLOCKS_MS
    unread = {number: at for number, at in found.undecided.items() if at < found.ends.get(number, 0)}
    return dict.fromkeys(found.undecided, now_ms) | first_times_ms(settings, unread, found.ends)


def _gone(settings: Settings, number: int, low: int, since_ms: int) -> Exception:
    since = datetime.fromtimestamp(since_ms / 1000, UTC).isoformat(timespec="seconds")
    reason = (
        f"needs a state of features that was made for others, or is lost. It follows from payments since {since}, and "
        f"partition {number} of {settings.input_topic!r} has none before offset {low}, perhaps removed since then"
    )
    return refused("checkpoint", settings.checkpoint, reason, GO_ON_WITHOUT)
