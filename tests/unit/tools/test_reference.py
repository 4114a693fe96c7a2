"""The reference documents against the code that they are written from."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from fraud_filter.config import Settings, env_name
from fraud_filter.config.settings import GROUPS
from tools import reference


@pytest.mark.parametrize("name", ["metrics", "settings"])
def test_a_document_is_what_the_code_says(name: str, tmp_path: Path) -> None:
    document: Path = getattr(reference, name.upper())
    made = tmp_path / "made.md"
    shutil.copy(document, made)
    getattr(reference, f"write_{name}")(made)
    assert made.read_text() == document.read_text(), "run `make generated`"


def test_each_setting_stands_in_one_table() -> None:
    rows = re.findall(r"^\| \S+ \| `(\w+)` \|", reference.SETTINGS.read_text(), re.MULTILINE)
    assert rows == [env_name(name) for name in Settings.model_fields]


def test_the_first_group_begins_with_the_first_setting() -> None:
    assert next(iter(GROUPS)) == next(iter(Settings.model_fields))
    assert set(GROUPS) <= set(Settings.model_fields)
