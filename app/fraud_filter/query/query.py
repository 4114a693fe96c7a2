"""What a query computes of the records. Source, trigger, checkpoint, sink, progress and standby are the same for each.

`filter_query` decides by rules; `user_query` calls a function of the user's.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any

import fraud_filter
from fraud_filter.config import Settings
from fraud_filter.rules.features import Feature
from fraud_filter.schema import PaymentSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from fraud_filter.query.once import Written

#: Settings of one process, of the first start alone, or parts by their content.
_OWN = (
    "metrics_host", "metrics_port", "probe_port", "ui_port", "starting_offsets",
    "latency_objective_ms", "standby_warm_up_s", "rules", "payment_schema",
)  # fmt: skip


@dataclass(frozen=True)
class Query(ABC):
    """What is computed.

    `version` tells two queries apart, `model_version` two models that they use; "" where there is none. `described`
    is said of it at its start, `origin` names it in a sentence. `features` are those whose state can be made again
    from the topic. `schema` has the fields of records that a source makes up. `sets_aside`: a record that ends the
    query each time is found, and passed over.
    """

    version: str
    origin: str
    described: Mapping[str, object]
    schema: PaymentSchema
    features: tuple[Feature, ...] = ()
    model_version: str = ""
    sets_aside: bool = False

    @abstractmethod
    def to_document(self) -> dict[str, Any]:
        """What `version` is made of, for JSON."""

    @abstractmethod
    def decide(
        self,
        records: DataFrame,
        settings: Settings,
        topic_id: str,
        written: Written,
        *,
        since: Mapping[int, int] | None = None,
        watermark_ms: int = 0,
    ) -> DataFrame:
        """The rows to write: columns `key`, `value`, `topic`, `headers`, as Spark's Kafka sink takes them.

        Args:
            records: as `sources` gives them.
            topic_id: of the input topic, for a header; "" for none.
            written: records of which the outputs hold rows, and of which nothing is written again.
            since: as of `decide.decide`, for records that are all there.
            watermark_ms: of the state of features.

        Raises:
            UsageError: no such rows can be made of them.
        """


def fingerprint(query: Query, settings: Settings) -> dict[str, str]:
    """What two filters share, by name a digest of the value: query, program and settings.

    Secrets are masked before, so that two passwords are alike.
    """
    parts: dict[str, Any] = {name: value for name, value in settings.shown().items() if name not in _OWN}
    parts["query" if settings.query else "rules"] = query.version
    parts["model"] = query.model_version
    parts["program"] = [fraud_filter.__version__, metadata.version("pyspark")]
    return {name: hashlib.sha256(json.dumps(value).encode()).hexdigest()[:12] for name, value in parts.items()}
