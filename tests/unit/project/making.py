"""What make would do, without doing it."""

from __future__ import annotations

import os
import subprocess

from fraud_filter.home import HOME


def make(*arguments: str, **env: str) -> str:
    """What make prints; as if no other make had called it."""
    clean = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run(
        ["make", "-C", str(HOME), "--no-print-directory", *arguments],
        env={**clean, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
