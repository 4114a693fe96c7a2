"""All that decides about a payment, as one thing with a version: `rules.version` of each decision.

It can be written down and read again, so that what was decided by rules of another day can be decided once more.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from pydantic import TypeAdapter

from fraud_filter.config import Settings, refused
from fraud_filter.rules.ruleset import RuleSet
from fraud_filter.schema import PaymentSchema

_DIGITS = 12


@dataclass(frozen=True)
class DecisionRules:
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
        """For JSON; where in which file it stands makes no difference."""
        document: dict[str, Any] = _DOCUMENT.dump_python(self, mode="json", exclude=_PLACES)
        return document


_DOCUMENT = TypeAdapter(DecisionRules)
_LINES = {"__all__": {"line"}}
_PLACES: Any = {"rules": {"path": True, "rules": _LINES, "features": _LINES}}


def decision_rules_of(rules: RuleSet, schema: PaymentSchema, settings: Settings) -> DecisionRules:
    """What decides with these settings; `rules` are those that the mode runs."""
    payments = settings.velocity_payments if rules.features else 0
    return DecisionRules(schema, rules, payments, settings.max_record_bytes, settings.emit)


def read_decision_rules(document: Any, version: str, settings: Settings) -> DecisionRules:
    """The rules of a document that `to_document` gave, as the checkpoint has kept it.

    Raises:
        UsageError: it is no such document.
    """
    place = f"the rules of version {version}"
    try:
        return _DOCUMENT.validate_python({**document, "rules": {**document["rules"], "path": place}})
    except (KeyError, TypeError, ValueError) as error:
        raise refused(
            "checkpoint", settings.checkpoint, f"does not hold {place}: {str(error).splitlines()[0]}",
            f"put back a copy of fraud-filter/rules/{version}.json, or audit with another --checkpoint",
        ) from None  # fmt: skip
