"""All that decides about a payment, as one thing with a version: `rules.version` of each decision.

It can be written down and read again, so that what was decided by rules of another day can be decided once more.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from fraud_filter.config import Settings, refused
from fraud_filter.rules.features import read_feature
from fraud_filter.rules.ruleset import Rule, RuleSet
from fraud_filter.schema import Field, PaymentSchema

_DIGITS = 12


@dataclass(frozen=True)
class Ruling:
    """Schema, rules with block lists, features and model, and the settings that make a difference; no descriptions.

    `velocity_payments` is 0 where there are no features; `emit` is the setting.
    """

    schema: PaymentSchema
    rules: RuleSet
    velocity_payments: int
    max_record_bytes: int
    emit: Literal["flagged", "all"] = "flagged"

    @property
    def approves(self) -> bool:
        """Whether payments that no rule matches are written, too."""
        return self.emit == "all"

    @cached_property
    def version(self) -> str:
        """12 hexadecimal digits over all of it."""
        return hashlib.sha256(json.dumps(self.to_document()).encode()).hexdigest()[:_DIGITS]

    def to_document(self) -> dict[str, Any]:
        """For JSON."""
        features, rules = self.rules.features, self.rules
        model = {"model": [rules.model, rules.model_version, list(rules.model_inputs)]} if rules.model else {}
        return {
            **({"has_prefix": True} if self.schema.has_prefix else {}),
            **({"time_unit": self.schema.time_unit} if self.schema.time_unit else {}),
            "schema": [[field.name, field.type, field.required] for field in self.schema.fields],
            "rules": [[rule.name, rule.when, rule.column, list(rule.ids)] for rule in self.rules.rules],
            "features": [one.to_document() for one in features],
            "velocity_payments": self.velocity_payments,
            "max_record_bytes": self.max_record_bytes,
            **model,
            **({"emit": self.emit} if self.approves else {}),
        }


def ruling_of(rules: RuleSet, schema: PaymentSchema, settings: Settings) -> Ruling:
    """What decides with these settings; `rules` are those that the mode runs."""
    payments = settings.velocity_payments if rules.features else 0
    return Ruling(schema, rules, payments, settings.max_record_bytes, settings.emit)


def read_ruling(document: Any, version: str, settings: Settings) -> Ruling:
    """The ruling of a document that `to_document` gave, as the checkpoint has kept it.

    Raises:
        UsageError: it is no such document.
    """
    try:
        fields = tuple(Field(name, kind, bool(required)) for name, kind, required in document["schema"])
        schema = PaymentSchema(fields, document.get("has_prefix") is True, str(document.get("time_unit", "")))
        rules = tuple(
            Rule(name, 0, when=when, column=column, ids=tuple(ids)) for name, when, column, ids in document["rules"]
        )
        features = tuple(map(read_feature, document["features"]))
        limits = int(document["velocity_payments"]), int(document["max_record_bytes"])
        model, model_version, inputs = document.get("model") or (None, "", ())
        emit: Literal["flagged", "all"] = "all" if document.get("emit") == "all" else "flagged"
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise refused(
            "checkpoint", settings.checkpoint, f"does not hold the rules of version {version}: {error!r}",
            f"put back a copy of fraud-filter/rules/{version}.json, or audit with another --checkpoint",
        ) from None  # fmt: skip
    place = Path(f"the rules of version {version}")
    return Ruling(schema, RuleSet(place, rules, features, model, tuple(inputs), model_version), *limits, emit)
