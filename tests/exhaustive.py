"""Parameters that only `make test-all` runs."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def exhaustive(values: Iterable[Any], *, but: Container[Any]) -> list[Any]:
    """Marks the values of a test's only parameter, except for those that every run takes."""
    return [value if value in but else pytest.param(value, marks=pytest.mark.exhaustive) for value in values]
