"""The rooms: nothing else beside them, a line for each in CONTRIBUTING, and tests where the code is."""

from __future__ import annotations

from pathlib import Path

import pytest

from fraud_filter.home import HOME

APP = HOME / "app"
#: Words that all packages use.
VOCABULARY = {"__init__", "__main__", "errors", "home", "modes", "schema", "stop_signals"}
#: Rooms whose subject is one module.
ROOMS_OF_ONE = {"records", "tail", "train"}
#: Tests of what is no package: the dashboards and rules of monitoring/, and the checkout's own scripts.
BESIDE = {"monitoring", "project", "tools"}


def packages() -> list[Path]:
    return sorted(file.parent for file in APP.rglob("__init__.py"))


def test_beside_the_packages_there_is_vocabulary_and_rooms_of_one_module() -> None:
    assert {file.stem for file in (APP / "fraud_filter").glob("*.py")} == VOCABULARY | ROOMS_OF_ONE
    assert {file.stem for file in (APP / "lab").glob("*.py")} == {"__init__"}


@pytest.mark.parametrize(("tests", "code"), [("unit", "fraud_filter"), ("unit/lab", "lab")])
def test_unit_tests_lie_as_their_packages_do(tests: str, code: str) -> None:
    folders = {
        folder.name
        for folder in (HOME / "tests" / tests).iterdir()
        if folder.is_dir() and list(folder.glob("test_*.py"))
    }
    rooms = {room.name for room in packages() if room.parent == APP / code}
    assert folders
    assert folders - BESIDE <= rooms


def test_contributing_has_a_line_for_each_room() -> None:
    text = (HOME / "CONTRIBUTING.md").read_text()
    rooms = [room.relative_to(APP) for room in packages()]
    assert [str(room) for room in rooms if len(room.parts) == 2 and f"| `{room.name}` |" not in text] == []


def test_helpers_of_tests_come_from_no_test_module() -> None:
    found = [
        f"{file.name}: {line}"
        for file in (HOME / "tests").rglob("*.py")
        for line in file.read_text().splitlines()
        if line.startswith(("from test_", "import test_"))
    ]
    assert found == []
