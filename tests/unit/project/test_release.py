"""The version is one and the same in all places that tell it."""

from __future__ import annotations

import re

import fraud_filter
from fraud_filter.home import HOME


def test_the_version_is_the_package_s_and_the_changelog_s() -> None:
    named = re.search(r'^version = "(.+)"$', (HOME / "pyproject.toml").read_text(), re.MULTILINE)
    assert named
    assert named[1] == fraud_filter.__version__
    newest = re.search(r"^## (\S+)$", (HOME / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest
    assert newest[1] == named[1]
