"""The extras: each wing runs without the packages of the others, and a verb that lacks one says which to install."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from fraud_filter.cli.verbs import EXTRAS
from fraud_filter.home import HOME

#: extra -> the rooms that need it; "" is the base installation.
ROOMS = {
    "": (
        *(
            "checkpoint",
            "cli",
            "config",
            "java",
            "kafka",
            "lock",
            "metrics",
            "model",
            "monitor",
            "probe",
            "query",
            "rules",
        ),
        *("records", "spark", "supervisor", "tail", "text"),
    ),
    "generate": ("generator", "train"),
    "audit": ("audit", "oracle"),
    "stack": ("compose",),
}
ALL = {module for modules in EXTRAS.values() for module in modules}

#: Python as it is where the packages of some modules are not installed.
_WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""
_IMPORT_ALL = """
import importlib, pkgutil
for room in {rooms!r}:
    package = importlib.import_module("fraud_filter." + room)
    print(package.__name__)
    for found in pkgutil.walk_packages(getattr(package, "__path__", []), package.__name__ + "."):
        importlib.import_module(found.name)
        print(found.name)
"""
_MAIN = "from fraud_filter.cli.main import main; sys.argv = ['fraud-filter', *{words!r}]; main()"


def run_without(blocked: set[str], code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _WITHOUT.format(blocked=blocked) + code],
        capture_output=True, text=True, timeout=120, check=False, cwd=folder,
        env={"PATH": os.environ["PATH"], "FRAUD_ENV_FILE": os.environ["FRAUD_ENV_FILE"], "HOME": str(folder),
             "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "FRAUD_KAFKA_TIMEOUT_S": "1"},
    )  # fmt: skip


def test_every_room_belongs_to_one_wing() -> None:
    packages = (folder.parent.name for folder in (HOME / "app/fraud_filter").glob("*/__init__.py"))
    rooms = sorted((*packages, "records", "tail", "train"))
    assert sorted(room for wing in ROOMS.values() for room in wing) == rooms


def test_the_table_of_extras_is_the_package_s() -> None:
    """By the names that the packages are installed by."""
    pyproject = (HOME / "pyproject.toml").read_text()
    block = pyproject.partition("[project.optional-dependencies]")[2].partition("\n# What builds")[0]
    asked = {
        extra: {re.split("[>=]", package)[0] for package in re.findall(r'"([^"]+)"', packages)}
        for extra, packages in re.findall(r"^(\w+) = \[(.*?)\]$", block, re.MULTILINE | re.DOTALL)
    }
    assert "fraud-filter[audit,generate,stack]" in asked["lab"]
    asked["lab"] -= {"cjdk", "fraud-filter[audit,generate,stack]"}
    installed = packages_distributions()
    assert asked == {extra: {installed[module][0].lower() for module in modules} for extra, modules in EXTRAS.items()}


@pytest.mark.parametrize("extra", ROOMS, ids=lambda extra: extra or "base")
def test_a_wing_can_be_imported_without_the_packages_of_the_others(extra: str, tmp_path: Path) -> None:
    others = ALL - set(EXTRAS.get(extra, ()))
    ran = run_without(others, _IMPORT_ALL.format(rooms=ROOMS[extra]), tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) >= len(ROOMS[extra])


@pytest.mark.parametrize(
    ("words", "missing", "extra"),
    [
        (["generate"], "faker", "generate"),
        (["generate", "--replay", "payments.csv"], "duckdb", "generate"),
        (["audit"], "duckdb", "audit"),
        (["audit"], "pyarrow", "audit"),
        (["up"], "docker", "stack"),
        (["status"], "docker", "stack"),
        (["rollout"], "docker", "stack"),
        (["down"], "docker", "stack"),
        (["demo"], "matplotlib", "lab"),
        (["lab", "bench"], "duckdb", "lab"),
        (["lab", "trial"], "docker", "lab"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_a_verb_says_which_extra_it_lacks(words: list[str], missing: str, extra: str, tmp_path: Path) -> None:
    ran = run_without({missing}, _MAIN.format(words=words), tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    named = " ".join(words[: 2 if words[0] == "lab" else 1])
    assert ran.stderr == (
        f"fraud-filter: `fraud-filter {named}` needs the package {missing}, which is not installed: "
        f"pip install 'fraud-filter[{extra}]'\n"
    )


@pytest.mark.parametrize("words", [["generate"], ["probe"], ["topics"], ["run"], ["health"]], ids=" ".join)
def test_the_stack_s_programs_need_faker_alone_of_all_extras(words: list[str], tmp_path: Path) -> None:
    """They come as far as to ask the broker, or the filter's page, which are not there."""
    ran = run_without(ALL - {"faker"}, _MAIN.format(words=words), tmp_path)
    assert ran.returncode == (1 if words == ["health"] else 2), ran.stderr
    assert "127.0.0.1" in ran.stdout + ran.stderr
    assert "pip install" not in ran.stderr


def test_a_broken_installation_is_a_defect(tmp_path: Path) -> None:
    """A package of the base installation is no matter of extras."""
    ran = run_without({"confluent_kafka"}, _MAIN.format(words=["probe"]), tmp_path)
    assert ran.returncode == 1
    assert "ModuleNotFoundError: No module named 'confluent_kafka'" in ran.stderr
