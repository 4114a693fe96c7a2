"""Features of a payment's key, as columns: exact sliding windows over the last payments of the key, kept as state.

Real-time mode gives one row out for each payment (Spark guide, "Real-time mode"): the key's aggregate as it is after
that payment. The aggregate is an array, the key's last payments with only what features need of them, a sum for each
feature that decays, and the record itself, carried through. All windows are read from that array, so that several share
one state. Payments lie in it by the time that windows go by: that of the append, or the payment's own.

A key's state leaves when the key is idle. The state lies in periods that overlap by the longest window: each payment
is put into every period that it lies in, and decided by the one in which all of its window lies. A watermark evicts
periods that are over, and Spark would drop payments that lie in them: see `_Horizon`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter.config import Settings, duration_s
from fraud_filter.rules.features import BETWEEN, OFFSET, STEPS, STRIDE, Feature

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: A payment's place among those of its key: milliseconds, then as many bits of its offset.
_OFFSET_BITS = 21
_ORDER, _HELD, _RECORD, _PERIOD, _KEY = "_order", "_held", "_record", "_period", "_per"
#: The time that windows go by; the same in milliseconds; the oldest place that a full state holds.
_TIME, _NOW, _OLDEST = "_time", "_now", "_oldest"
#: The time by which a payment's weight in a sum is reckoned, in milliseconds.
_AGED = "_aged"
#: The record's own columns, beside those of the payment's fields.
TRUNCATED = "_truncated"
#: How far clocks may be apart: a broker's ahead of the driver's, and the driver's behind what it was at a batch before.
_CLOCKS_MS = 60_000


class _Horizon(NamedTuple):
    """The times that watermark and periods may see in a batch, so that Spark drops no payment as late.

    The watermark is `delay_ms` behind the newest time of the batches before; no time is above their `high`, so it is
    `_CLOCKS_MS` below what their `low` was. A later batch has a higher `low`. The watermark that a checkpoint holds at
    the start is at most `watermark_ms`, or so far below `low` too (`supervisor.start_position`).
    """

    low: Column
    high: Column
    delay_ms: int

    @classmethod
    def of(cls, features: tuple[Feature, ...], settings: Settings, watermark_ms: int) -> _Horizon:
        """From the time at which the batch begins, by the driver's clock."""
        lag_ms, batch_ms = late_after_ms(features, settings), round(duration_s(settings.real_time_duration) * 1000)
        now = F.unix_millis(F.current_timestamp())
        low = F.greatest(now - lag_ms, F.lit(watermark_ms)) if watermark_ms else now - lag_ms
        return cls(low, now + batch_ms + _CLOCKS_MS, lag_ms + batch_ms + 2 * _CLOCKS_MS)


def late_after_ms(features: tuple[Feature, ...], settings: Settings) -> int:
    """So long before a batch begins may a payment's time be that it is decided in it; earlier ones are late."""
    return round(duration_s(settings.velocity_lag) * 1000) + features[0].late_ms


def needs_watermark(watermark_ms: int, now_ms: float, features: tuple[Feature, ...], settings: Settings) -> bool:
    """Whether a query that starts now has to know the watermark of its checkpoint."""
    return watermark_ms > now_ms - late_after_ms(features, settings) - _CLOCKS_MS


def add_features(
    judged: DataFrame, features: tuple[Feature, ...], settings: Settings, watermark_ms: int = 0
) -> DataFrame:
    """The records with a column for each feature, and `_truncated`: the names of those whose window may be cut short.

    Args:
        judged: records with the payment's fields, `_partition`, `_offset`, `_timestamp` and `_is_rejected`. A record
            that is rejected, or has no key, has no features (null), and is in no state but that of all of these. One
            that is late (`is_late`) is in the state as others are.
        watermark_ms: of the checkpoint, where it is needed (`needs_watermark`), in milliseconds since 1970.
    """
    horizon = _Horizon.of(features, settings, watermark_ms)
    timed = _timed(judged, features, horizon).withWatermark(_TIME, f"{horizon.delay_ms} milliseconds")
    keyed = _keyed(timed, judged.columns, features, horizon)
    kept = {_HELD: _held(features, settings)} | _sums(features)
    rows = keyed.groupBy(_KEY, _PERIOD).agg(
        *(column.alias(name) for name, column in kept.items()), F.last(_RECORD).alias(_RECORD)
    )
    return _values(rows, features, settings.velocity_payments, horizon)


def is_late(features: tuple[Feature, ...], settings: Settings, watermark_ms: int = 0) -> Column:
    """Whether a payment's windows may have left the state when it is read; arguments as of `add_features`."""
    return _time_ms(features) < _Horizon.of(features, settings, watermark_ms).low


def add_features_in_batch(judged: DataFrame, features: tuple[Feature, ...], settings: Settings) -> DataFrame:
    """The same for records that are all there: the state of a key is what came before, as far as it holds.

    Of payments of a key on several partitions the earlier append comes first.
    """
    from pyspark.sql import Window

    arrival = F.unix_millis(f"{_RECORD}._timestamp"), F.col(f"{_RECORD}._offset")
    before = Window.partitionBy(_KEY, _PERIOD).orderBy(*arrival).rowsBetween(Window.unboundedPreceding, 0)
    kept = {_HELD: _held(features, settings)} | _sums(features)
    rows = _keyed(_timed(judged, features), judged.columns, features).select(
        _KEY, _PERIOD, _RECORD, *(column.over(before).alias(name) for name, column in kept.items())
    )
    return _values(rows, features, settings.velocity_payments)


def _timed(judged: DataFrame, features: tuple[Feature, ...], horizon: _Horizon | None = None) -> DataFrame:
    time = _time_ms(features)
    return judged.select("*", F.timestamp_millis(_clipped(time, horizon)).alias(_TIME))


def _clipped(time_ms: Column, horizon: _Horizon | None) -> Column:
    """The time that watermark and periods see."""
    return F.greatest(_aged(time_ms, horizon), horizon.low) if horizon else time_ms


def _aged(time_ms: Column, horizon: _Horizon | None) -> Column:
    """The time by which a payment's weight in a sum is reckoned."""
    return F.least(time_ms, horizon.high) if horizon else time_ms


def _time_ms(features: tuple[Feature, ...], of: str = "") -> Column:
    """The time by which windows go: the payment's own where that is wanted and can be believed, or the append time."""
    appended = F.unix_millis(f"{of}_timestamp")
    by, late_ms = features[0].by, features[0].late_ms
    if not by:
        return appended
    own = F.unix_millis(f"{of}`{by}`")
    return F.when(own.between(appended - late_ms, appended), own).otherwise(appended)


def _keyed(
    judged: DataFrame, columns: list[str], features: tuple[Feature, ...], horizon: _Horizon | None = None
) -> DataFrame:
    """The records with key and period, their place among those of the key, and what of them is kept for features;
    `columns` make the record."""
    key = F.when(~F.col("_is_rejected"), F.col(f"`{features[0].per}`"))
    time = _time_ms(features)
    place = (time * 2**_OFFSET_BITS) + F.col("_offset").bitwiseAND(2**_OFFSET_BITS - 1)
    return judged.select(
        key.alias(_KEY),
        _periods(_longest_ms(features)),
        F.when(key.isNotNull(), place).alias(_ORDER),
        _aged(time, horizon).alias(_AGED),
        *(column.alias(name) for name, column in _narrowed(features).items()),
        F.struct(*(F.col(f"`{name}`") for name in columns)).alias(_RECORD),
    )


def _longest_ms(features: tuple[Feature, ...]) -> int:
    return max(feature.over_ms for feature in features)


def _held(features: tuple[Feature, ...], settings: Settings) -> Column:
    """The last payments of a key, newest first."""
    return F.call_function("max_by", _element(features), F.col(_ORDER), F.lit(_most(features, settings)))


def _most(features: tuple[Feature, ...], settings: Settings) -> int:
    """How many payments of a key are held. One where none is needed: without it Spark would aggregate by sorting."""
    return settings.velocity_payments if any(not feature.half_ms for feature in features) else 1


def _sums(features: tuple[Feature, ...]) -> dict[str, Column]:
    """What is added up of each feature that decays: weights, or a field's numbers by their weight."""
    weighed = {}
    for feature in features:
        if feature.half_ms:
            weight = _weight(_AGED, feature)
            number = F.col(f"{_RECORD}.`{feature.field}`").cast("DOUBLE") if feature.field else F.lit(1.0)
            weighed[_sum_name(feature)] = F.sum(F.when(F.col(_KEY).isNotNull(), weight * number))
    return weighed


def _sum_name(feature: Feature) -> str:
    return f"_sum_{feature.name}"


def _weight(time_ms: str, feature: Feature) -> Column:
    """The weight of a payment of that time in its period, as `rules/features` says; null of a late one before that."""
    age = f"({time_ms} - unix_millis({_PERIOD}.start))"
    step = F.expr(f"{age} * {STEPS} div {feature.half_ms}")
    between = F.get(F.array(*map(F.lit, BETWEEN)), (step % STEPS).cast("INT"))
    # A whole power of two is exact (Java's Math.pow says so).
    weight = F.pow(F.lit(2.0), (F.floor(step / STEPS) - OFFSET).cast("DOUBLE")) * between
    return F.when(F.expr(age) >= 0, weight)


def _narrowed(features: tuple[Feature, ...]) -> dict[str, Column]:
    """What is kept of each payment, beside its place."""
    return {_narrow_name(feature): _narrow(feature) for feature in features if feature.field and not feature.half_ms}


def _periods(longest_ms: int) -> Column:
    every = f"{STRIDE * longest_ms} milliseconds"
    return F.window(_TIME, f"{(STRIDE + 1) * longest_ms} milliseconds", every).alias(_PERIOD)


def _element(features: tuple[Feature, ...]) -> Column:
    return F.struct(_ORDER, *_narrowed(features))


def _narrow_name(feature: Feature) -> str:
    return f"_{'same' if feature.kind == 'count_distinct' else 'of'}_{feature.field}"


def _narrow(feature: Feature) -> Column:
    """What is kept of a payment for a feature. To tell texts apart 8 bytes of each do, however long it is."""
    field = F.col(f"`{feature.field}`")
    if feature.kind != "count_distinct":
        return field
    return F.when(field.isNotNull(), F.xxhash64(field))


def _values(rows: DataFrame, features: tuple[Feature, ...], most: int, horizon: _Horizon | None = None) -> DataFrame:
    """The features of each record by the period that decides it, from the payments that its key's state holds: newest
    first, this one among them."""
    now = _time_ms(features, f"{_RECORD}.")
    begin = F.unix_millis(F.col(f"{_PERIOD}.start"))
    is_deciding = _clipped(now, horizon) >= begin + _longest_ms(features)
    decided = rows.withColumn(_AGED, _aged(now, horizon)).where(is_deciding)
    exact = [feature for feature in features if not feature.half_ms]
    windows = {feature.over_ms: f"_within_{feature.over_ms}" for feature in exact}
    within = (_within(now, length).alias(name) for length, name in windows.items())
    oldest = F.get(F.col(_HELD), F.lit(most - 1))[_ORDER]
    decayed = (
        (F.col(_sum_name(feature)) / _weight(_AGED, feature)).alias(_sum_name(feature))
        for feature in features
        if feature.half_ms
    )
    records = decided.select(f"{_RECORD}.*").columns
    seen = decided.select(f"{_RECORD}.*", _KEY, now.alias(_NOW), oldest.alias(_OLDEST), *within, *decayed)
    has_key = F.col(_KEY).isNotNull()
    values = (F.when(has_key, _value(feature, windows)).alias(feature.name) for feature in features)
    # By a clock that is ahead, payments of the window may lie in another period.
    is_ahead = F.col(_NOW) > horizon.high if horizon else F.lit(False)
    is_full = {feature.name: F.col(_OLDEST) >= _begin(F.col(_NOW), feature.over_ms) for feature in exact}
    cut = (
        F.when(has_key & (is_full.get(feature.name, F.lit(False)) | is_ahead), F.lit(feature.name))
        for feature in features
    )
    truncated = F.array_join(F.array(*cut).cast("ARRAY<STRING>"), ",").alias(TRUNCATED)
    return seen.select(*(F.col(f"`{name}`") for name in records), *values, truncated)


def _within(now: Column, length_ms: int) -> Column:
    """The payments of the last `length_ms`, this one's millisecond included."""
    low, high = _begin(now, length_ms), _begin(now, 0)
    return F.filter(_HELD, lambda one: (one[_ORDER] >= low) & (one[_ORDER] < high))


def _begin(now: Column, length_ms: int) -> Column:
    """The first place in a window that ends now; with 0 the first one after it."""
    begin: Column = (now + 1 - length_ms) * 2**_OFFSET_BITS
    return begin


def _value(feature: Feature, windows: Mapping[int, str]) -> Column:
    if feature.half_ms:
        return F.col(_sum_name(feature))
    window = windows[feature.over_ms]
    if feature.kind == "count":
        return F.size(window)
    if feature.kind == "seconds_since_last":
        before = F.get(F.col(window), F.lit(1))[_ORDER]
        return _seconds_since(before)
    if feature.kind == "first_seen":
        return _seconds_since(F.get(F.col(window), F.size(window) - 1)[_ORDER])
    given = F.filter(F.transform(window, lambda one: one[_narrow_name(feature)]), lambda value: value.isNotNull())
    if feature.kind == "count_distinct":
        return F.size(F.array_distinct(given))
    if feature.kind in ("min", "max"):
        return F.array_min(given) if feature.kind == "min" else F.array_max(given)
    nothing = F.lit(0).cast(feature.total)
    # The oldest first, as a running sum adds: a sum of floating-point numbers depends on the order.
    added = F.aggregate(F.reverse(given), nothing, lambda so_far, value: (so_far + value).cast(feature.total))
    if feature.kind == "sum":
        return F.when(F.size(given) > 0, added)
    return F.when(F.size(given) > 0, added.cast("DOUBLE") / F.size(given))


def _seconds_since(place: Column) -> Column:
    return (F.col(_NOW) - F.shiftright(place, _OFFSET_BITS)) / 1000.0
