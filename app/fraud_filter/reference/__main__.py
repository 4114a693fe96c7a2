"""Writes the tables of docs/metrics.md and docs/settings.md again."""

from __future__ import annotations

from fraud_filter.reference import metrics, settings

metrics.write()
settings.write()
