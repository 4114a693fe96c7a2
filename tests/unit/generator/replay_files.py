"""Files to replay, and what comes out of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fraud_filter.generator.replay import Replay
from fraud_filter.home import HOME
from fraud_filter.schema import load_schema

DATA = Path(__file__).parents[2] / "data"
SCHEMA = load_schema(HOME / "app/payment.ddl")


def sent(replay: Replay) -> list[dict[str, Any]]:
    """The payments of a replay."""
    return [json.loads(value or b"") for batch in replay.batches(0) for value in batch.values]


def write_csv(path: Path, *lines: str) -> Path:
    """A file of these lines."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
