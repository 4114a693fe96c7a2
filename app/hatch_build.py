"""What a wheel holds beside the code: the files that a checkout has outside its packages. Called by hatchling."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Files, and folders with all that is in them; `fraud_filter/home.py` finds them in both places. The images of the
#: Compose stack are built from them, and hold the program's source, which is here a second time for that.
FILES = (
    ".dockerignore",
    ".env.example",
    "LICENSE",
    "README.md",
    "app/base",
    "app/blocked-cards.txt",
    "app/hatch_build.py",
    "app/jarcopy.py",
    "app/locked",
    "app/payment.ddl",
    "app/rules-velocity.yml",
    "app/rules.yml",
    "docker-compose.existing-kafka.yml",
    "docker-compose.secure.yml",
    "docker-compose.yml",
    "docs/runbook.md",
    "kafka",
    "monitoring",
    "pyproject.toml",
    "requirements.lock",
    "spark",
)
_SOURCE = "app/fraud_filter"


class Files(BuildHookInterface):
    """Adds them; an editable installation is a link to the checkout, which has them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a build of `version`, "standard" or "editable"."""
        if version == "standard":
            root = Path(self.root)
            # What is included by force is left out in its own place: the source is, from a copy.
            self._copy = TemporaryDirectory()
            copied = Path(shutil.copytree(root / _SOURCE, Path(self._copy.name) / _SOURCE))
            pairs = [(file, root) for name in FILES for file in _files(root / name)]
            pairs += [(file, Path(self._copy.name)) for file in _files(copied)]
            build_data["force_include"] |= {
                str(file): f"fraud_filter/files/{file.relative_to(above)}" for file, above in pairs
            }

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Called after it."""
        if version == "standard":
            self._copy.cleanup()


def _files(path: Path) -> Iterator[Path]:
    found = path.rglob("*") if path.is_dir() else [path]
    return (file for file in found if file.is_file() and "__pycache__" not in file.parts)
