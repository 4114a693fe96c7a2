"""Before the query starts: whether the state in its checkpoint is of the features that it is to compute."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping

from fraud_filter.checkpoint.contents import read_contents
from fraud_filter.checkpoint.entries import read_watermark
from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.checkpoint.notes import KeptState, read_state, write_state
from fraud_filter.checkpoint.progress import CheckpointReader
from fraud_filter.checkpoint.repair import change_state
from fraud_filter.config import Settings, duration_s, refused
from fraud_filter.kafka.append_time import require_append_time
from fraud_filter.kafka.offsets import first_since, first_time_ms
from fraud_filter.modes import MODES
from fraud_filter.query.preflight import Inputs
from fraud_filter.query.velocity import needs_watermark

_log = logging.getLogger(__name__)


def settle_state(files: CheckpointFiles, inputs: Inputs, settings: Settings, *, only_check: bool = False) -> None:
    """Notes the features in a new checkpoint; does nothing where those of the checkpoint are the same.

    Where features may be skipped (`features_unsupported`), a mode that computes none drops their state, and one that
    computes them again begins with empty windows. With `only_check` it notes and changes nothing.

    Raises:
        UsageError: the checkpoint has state of other features, or the features need a state that it has not; or the
            topic's timestamps are the producers' own.
        CheckpointError: the file system refuses.
    """
    if inputs.rules.features:
        require_append_time(settings, [settings.input_topic])
    features = [json.loads(json.dumps(feature.described)) for feature in inputs.rules.features]
    wanted = KeptState(features, inputs.state_partitions, settings.velocity_payments) if features else None
    kept = read_state(files)
    if kept == wanted:
        return
    if _may_change(kept, wanted, settings):
        if not only_check:
            change_state(files, settings, wanted)
        return
    newest = CheckpointReader(files, settings.input_topic).newest()
    if newest is None:
        if not only_check:
            write_state(files, wanted)
        return
    ends = json.dumps({settings.input_topic: {str(number): at for number, at in sorted(newest.end.items())}})
    remedy = f"put back what it was made with, or give a new location and starting_offsets {ends!r}"
    raise refused("checkpoint", settings.checkpoint, _difference(kept, wanted), f"{remedy}: its windows begin empty")


def _may_change(kept: KeptState | None, wanted: KeptState | None, settings: Settings) -> bool:
    """Whether the checkpoint may go on with another state: rules that lost their features may do so by mistake."""
    if settings.features_unsupported != "skip" or settings.source != "kafka":
        return False
    return kept is None or (wanted is None and bool(MODES[settings.mode].lacks_features))


def _difference(kept: KeptState | None, wanted: KeptState | None) -> str:
    if kept is None:
        return "was made without features, and its state can't be added later"
    if wanted is None:
        return "holds the state of features, which this query does not compute"
    if kept.features != wanted.features:
        old, new = ({str(feature[0]): feature for feature in state.features} for state in (kept, wanted))
        changed = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
        what = ", ".join(changed) or "their order"
        return f"holds the state of other features than the rules have (changed: {what})"
    numbers = {
        "velocity_partitions": (kept.partitions, wanted.partitions),
        "velocity_payments": (kept.payments, wanted.payments),
    }
    told = (f"{name} is {now} and was {was}" for name, (was, now) in numbers.items() if was != now)
    return f"holds a state that can't be changed: {', '.join(told)}"


def fit_lag(settings: Settings, at: Mapping[int, int], ends: Mapping[int, int]) -> Settings:
    """Settings whose `velocity_lag` is longer than the backlog, however old that is.

    Spark drops payments that lie further behind the newest one than that, and a short partition is worked off before
    a long one.

    Args:
        at: where the query goes on, by partition.
        ends: where a reader sees the partitions end.
    """
    now_ms = time.time() * 1000
    unread = {number: offset for number, offset in at.items() if offset < ends.get(number, 0)}
    recent = first_since(settings, unread, round(now_ms - duration_s(settings.velocity_lag) * 500))
    older = {number: offset for number, offset in unread.items() if recent.get(number, ends[number]) > offset}
    # How old takes a read.
    times = (first_time_ms(settings, number, offset, ends[number]) or now_ms for number, offset in older.items())
    behind_s = (now_ms - min(times, default=now_ms)) / 1000
    if 2 * behind_s <= duration_s(settings.velocity_lag):
        return settings
    lag = f"{round(2 * behind_s) + 1} seconds"
    _log.warning("event=state_kept_longer velocity_lag=%r backlog_s=%d", lag, behind_s)
    return settings.model_copy(update={"velocity_lag": lag})


def find_watermark(files: CheckpointFiles, inputs: Inputs, settings: Settings) -> int:
    """The watermark of the checkpoint's state in milliseconds since 1970; 0 where the query need not know it.

    It need not after a start with the same settings: what is behind the watermark is late for the query anyway. It
    must where the lag is longer now, or this machine's clock is behind the one that the former query went by.

    Raises:
        CheckpointError: the file system refuses.
    """
    contents = read_contents(files)
    batch, commit = contents.offsets.newest(), contents.commits.newest()
    newest = max(batch.watermark_ms if batch else 0, read_watermark(commit) if commit else 0)
    return newest if needs_watermark(newest, time.time() * 1000, inputs.rules.features, settings) else 0
