"""The fingerprint of a filter: digests of rules, schema, program, and the settings that two filters share."""

from __future__ import annotations

import hashlib
import json
from importlib import metadata
from typing import Any

import fraud_filter
from fraud_filter.config import Settings
from fraud_filter.query.preflight import Inputs

#: Those of one process, of the first start alone, or parts by their content.
_OWN = (
    "metrics_host", "metrics_port", "probe_port", "ui_port", "starting_offsets",
    "latency_objective_ms", "standby_warm_up_s", "rules", "payment_schema",
)  # fmt: skip


def fingerprint(inputs: Inputs, settings: Settings) -> dict[str, str]:
    """By name a digest of the value; secrets are masked before, so that two passwords are alike."""
    parts: dict[str, Any] = {name: value for name, value in settings.shown().items() if name not in _OWN}
    parts["query" if settings.query else "rules"] = inputs.query.version
    parts["model"] = inputs.query.model_version
    parts["program"] = [fraud_filter.__version__, metadata.version("pyspark")]
    return {name: hashlib.sha256(json.dumps(value).encode()).hexdigest()[:12] for name, value in parts.items()}
