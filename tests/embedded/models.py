"""Models for tests, trained in seconds on made-up payments with labelled fraud."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fraud_filter.config import Settings, load
from fraud_filter.home import HOME
from fraud_filter.rules.ruleset import RuleSet, load_rules
from fraud_filter.schema import load_schema
from fraud_filter.train import Trained, fit, made_up

SCHEMA = load_schema(HOME / "app/payment.ddl")
SHIPPED = (HOME / "app/rules-velocity.yml").read_text()


def train(spark: Any, rules: RuleSet, out: Path, *, trees: int = 5, payments: int = 4000) -> Trained:
    """Trains on the features of the rules, and saves the model."""
    settings = load()
    model, trained = fit(made_up(spark, settings, SCHEMA, payments=payments), rules, SCHEMA, settings, trees=trees)
    model.save(str(out))
    return trained


def with_model(directory: Path, text: str, rule: str = "{name: scored, when: score > 0.5}") -> Path:
    """A rules file beside which the directory `model` lies, and a rule over its score."""
    file = directory / "rules.yml"
    (directory / "blocked-cards.txt").write_text((HOME / "app/blocked-cards.txt").read_text())
    file.write_text(f"model: model\n{text}\n  - {rule}\n")
    return file


def read(file: Path) -> RuleSet:
    """The rules of a file."""
    return load_rules(file, SCHEMA)


def settings_with(file: Path, **changes: Any) -> Settings:
    """Settings that name the file."""
    return load({"rules": str(file), **changes})
