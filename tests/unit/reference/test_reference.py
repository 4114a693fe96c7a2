"""The reference documents against the code that they are written from."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from fraud_filter.config import Settings, env_name
from fraud_filter.config.settings import GROUPS
from fraud_filter.reference import metrics, settings


@pytest.mark.parametrize("document", [metrics, settings])
def test_a_document_is_what_the_code_says(document: ModuleType, tmp_path: Path) -> None:
    made = tmp_path / "made.md"
    shutil.copy(document.FILE, made)
    document.write(made)
    assert made.read_text() == document.FILE.read_text(), "run `make reference`"


def test_each_setting_stands_in_one_table() -> None:
    rows = re.findall(r"^\| \S+ \| `(\w+)` \|", settings.FILE.read_text(), re.MULTILINE)
    assert rows == [env_name(name) for name in Settings.model_fields]


def test_the_first_group_begins_with_the_first_setting() -> None:
    assert next(iter(GROUPS)) == next(iter(Settings.model_fields))
    assert set(GROUPS) <= set(Settings.model_fields)


@pytest.mark.parametrize(
    "row",
    [
        "| `--mode` | `FRAUD_MODE` | `real-time` | `micro-batch`, `async-progress`, `continuous`, `real-time` | ",
        "| `--kafka-timeout-s` | `FRAUD_KAFKA_TIMEOUT_S` | `10` | number above 0 to 300 | ",
        "| `--rules` | `FRAUD_RULES` | `app/rules.yml` | file | ",
        "| - | `FRAUD_KAFKA_SASL_PASSWORD` | - | text | ",
        "| `--ui-port` | `FRAUD_UI_PORT` | `0` | whole number from 0 to 65535 | ",
        "| `--spark-conf` | `FRAUD_SPARK_CONF` | - | JSON object | ",
        "| `--spark-master` | `SPARK_MASTER` | `local[*]` | text not empty | ",
    ],
)
def test_a_row_tells_option_environment_default_and_bounds(row: str) -> None:
    assert row in settings.FILE.read_text()
