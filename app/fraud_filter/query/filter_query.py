"""The fraud filter as a query: the rules of a file, with their features and their model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fraud_filter.config import Settings, refused
from fraud_filter.model.saved import SavedModel, read_model
from fraud_filter.modes import MODES, Mode
from fraud_filter.query.query import Query
from fraud_filter.rules.ruleset import RuleSet, load_rules
from fraud_filter.rules.version import DecisionRules, decision_rules_of
from fraud_filter.schema import PaymentSchema, input_schema
from fraud_filter.text.logs import get_logger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from fraud_filter.query.once import Written

_log = get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class FilterQuery(Query):
    """Decides by rules, and by the model that they have."""

    deciding: DecisionRules
    model: SavedModel | None = None

    def to_document(self) -> dict[str, Any]:
        """The rules, as the checkpoint keeps them for the audit."""
        return self.deciding.to_document()

    def decide(self, records: DataFrame, settings: Settings, topic_id: str, written: Written, **more: Any) -> DataFrame:
        """The decisions, as `decide.decide`."""
        from fraud_filter.query import decide as query

        rules, schema = self.deciding.rules, self.deciding.schema
        return query.decide(records, schema, rules, settings, topic_id, self.model, written, **more)


def filter_query(rules: RuleSet, schema: PaymentSchema, settings: Settings, model: SavedModel | None) -> FilterQuery:
    """The query that decides by these rules and their model."""
    deciding = decision_rules_of(rules, schema, settings)
    return FilterQuery(
        version=deciding.version,
        origin=f"the features of {rules.path}",
        described={"rules": len(rules.rules)},
        features=rules.features,
        model_version=model.version if model else "",
        schema=schema,
        sets_aside=True,
        deciding=deciding,
        model=model,
    )


def load_filter(settings: Settings, mode: Mode) -> FilterQuery:
    """Reads and checks schema, rules and model as far as that needs no Spark.

    Raises:
        UsageError: one of them is wrong, or the mode can't run the rules.
    """
    if settings.record_format != "json" and settings.source != "kafka":
        raise refused("record_format", settings.record_format, "is for Kafka's records", "set source to kafka")
    schema = input_schema(settings)
    rules, model = _fit(load_rules(settings.rules, schema), schema, settings, mode)
    if not schema.required:
        raise refused("payment_schema", settings.payment_schema, "needs at least one NOT NULL field")
    return filter_query(rules, schema, settings, model)


def _fit(rules: RuleSet, schema: PaymentSchema, settings: Settings, mode: Mode) -> tuple[RuleSet, SavedModel | None]:
    """The rules that the mode can run: all, unless `features_unsupported` says that those with features are skipped.

    With their model, where one is left.
    """
    left, model = read_model(rules, schema, settings)
    if not rules.features or not mode.lacks_features:
        return left, model
    run = {rule.name for rule in left.rules}
    skipped = [rule.name for rule in rules.rules if rule.name not in run]
    if left.features or not left.rules:
        able = ", ".join(other.name for other in MODES.values() if not other.lacks_features)
        names = ", ".join(feature.name for feature in rules.features)
        raise refused(
            "mode", mode.name, f"can't compute the features of {rules.path} ({names}): {mode.lacks_features}",
            f"set mode to {able}"
            + (", or features_unsupported to skip to run without the rules that use them" if left.features else ""),
        )  # fmt: skip
    _log.warning("rules_skipped", mode=mode.name, rules=",".join(skipped), reason=mode.lacks_features)
    return left, model
