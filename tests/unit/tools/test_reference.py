"""The reference documents against the code that they are written from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tools import reference


@pytest.mark.parametrize("name", ["metrics", "settings"])
def test_a_document_is_what_the_code_says(name: str, tmp_path: Path) -> None:
    document: Path = getattr(reference, name.upper())
    made = tmp_path / "made.md"
    shutil.copy(document, made)
    getattr(reference, f"write_{name}")(made)
    assert made.read_text() == document.read_text(), "run `make generated`"
