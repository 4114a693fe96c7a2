"""The stateless queries of Nexmark, written from their definitions: docs/results/published.md.

A bid is made of the place of its record, as Nexmark's own generator makes one of its number: nothing is read of the
record but its key. Auctions, bidders, prices, channels and addresses are as many and as frequent as Nexmark's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: So many values has each number that a bid is made of.
_DRAWN = {"auction": 10_000, "bidder": 10_000, "share": 1_000_000, "kind": 8, "number": 10_000}
#: Half of the bids come from one of these channels, the others from one of ten thousand.
_CHANNEL = """coalesce(get(array('Google', 'Facebook', 'Baidu', 'Apple'), CAST(kind AS INT)),
                       concat('channel-', CAST(number AS STRING)))"""
#: Three folders of the channel's own; nine in ten of the other channels have their id in the address.
_URL = """concat('https://www.nexmark.com/', concat_ws('/', substr(md5(channel), 1, 4), substr(md5(channel), 5, 4),
                 substr(md5(channel), 9, 4)), '/item.htm?query=1',
                 if(kind > 3 AND number % 10 > 0, concat('&channel_id=', CAST(crc32(channel) AS STRING)), ''))"""
_CHANNEL_ID = "nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '')"
#: From dollars.
_EUROS = "CAST(0.908 * price AS DECIMAL(23, 3))"
_HOUR = "hour(dateTime)"


def bids(records: DataFrame) -> DataFrame:
    """The bid of each record, with its key: prices are from 100 to 100 millions, each power of ten as often."""
    draws = {name: F.expr(f"pmod(xxhash64('{name}', partition, offset), {count})") for name, count in _DRAWN.items()}
    made = {
        "price": "CAST(round(pow(10, 2 + 6 * share / 1000000)) AS BIGINT)",
        "channel": _CHANNEL,
        "dateTime": "timestamp",
        "extra": "translate(sha2(CAST(share AS STRING), 256), '0123456789', 'ghijklmnop')",
    }
    drawn = records.withColumns(draws).withColumns({name: F.expr(text) for name, text in made.items()})
    return drawn.select("key", "auction", "bidder", "price", "channel", F.expr(_URL).alias("url"), "dateTime", "extra")


def q0(records: DataFrame) -> DataFrame:
    """Each bid as it is."""
    return _rows(bids(records), "auction", "bidder", "price", "dateTime", "extra")


def q1(records: DataFrame) -> DataFrame:
    """Each bid in euros."""
    return _rows(bids(records).withColumn("price", F.expr(_EUROS)), "auction", "bidder", "price", "dateTime", "extra")


def q2(records: DataFrame) -> DataFrame:
    """The price of bids for one in 123 auctions."""
    return _rows(bids(records).where("auction % 123 = 0"), "auction", "price")


def q14(records: DataFrame) -> DataFrame:
    """Bids of some prices, with the time of day, and how often `c` is in a text; Nexmark counts it by a function."""
    time = f"CASE WHEN {_HOUR} BETWEEN 8 AND 18 THEN 'dayTime' WHEN {_HOUR} <= 6 OR {_HOUR} >= 20 THEN 'nightTime'"
    count = "length(extra) - length(replace(extra, 'c', '')) AS c_counts"
    chosen = bids(records).withColumn("price", F.expr(_EUROS)).where("price > 1000000 AND price < 50000000")
    kind = f"{time} ELSE 'otherTime' END AS bidTimeType"
    return _rows(chosen, "auction", "bidder", "price", kind, "dateTime", "extra", count)


def q21(records: DataFrame) -> DataFrame:
    """The id of each bid's channel, of four by name, else as its address has it; bids without one are left out."""
    known = "CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2'"
    found = bids(records).withColumn("channel_id", F.expr(f"{known} WHEN 'baidu' THEN '3' ELSE {_CHANNEL_ID} END"))
    return _rows(found.where("channel_id IS NOT NULL"), "auction", "bidder", "price", "channel", "channel_id")


def q22(records: DataFrame) -> DataFrame:
    """The three folders of each bid's address."""
    folders = (f"split_part(url, '/', {number + 3}) AS dir{number}" for number in (1, 2, 3))
    return _rows(bids(records), "auction", "bidder", "price", "channel", *folders)


def _rows(chosen: DataFrame, *columns: str) -> DataFrame:
    """The columns as JSON, under the record's key."""
    return chosen.select("key", F.to_json(F.struct(*map(F.expr, columns))).alias("value"))
