"""Programs of others that tests start, where they are installed."""

from __future__ import annotations

import os
import shutil

import pytest


def require_program(variable: str, *names: str) -> str:
    """The program that an environment variable names, or the first of `names` on PATH; none skips the test."""
    named = os.environ.get(variable)
    found = next(filter(None, map(shutil.which, [named] if named else names)), None)
    if found is None:
        pytest.skip(f"no {' or '.join(names)} on PATH, and {variable} names none")
    return found
