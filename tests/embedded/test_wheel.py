"""The package as `pip install` brings it: a wheel, installed where no checkout is in reach, used from `init`."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from fraud_filter.home import HOME

#: A short run of one mode; half of 100 payments/s are flagged.
SHORT = ("--modes", "real-time", "--seconds", "4", "--warmup", "2")

Installed = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def project(installed: Installed, tmp_path: Path) -> Path:
    """A directory that `init` has written, with a rule of its own beside the shipped ones."""
    made = installed("init", "mine", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    rules = tmp_path / "mine/conf/rules.yml"
    content = yaml.safe_load(rules.read_text())
    content["rules"].append({"name": "one-of-mine", "when": "amount = 1"})
    rules.write_text(yaml.safe_dump(content))
    return rules.parent.parent


def test_the_wheel_holds_what_is_looked_for_beside_the_code(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"fraud_filter", "lab"}
    for file in ("app/rules.yml", "kafka/topics.yml", "kafka/jgo.lock.toml", "spark/conf/log4j2.properties"):
        assert f"fraud_filter/files/{file}" in names
    for file in ("docker-compose.yml", ".env.example", ".dockerignore", "spark/Dockerfile", "app/fraud_filter/home.py"):
        assert f"fraud_filter/files/{file}" in names
    for file in ("app/jarcopy.py", "spark/class_archive.py", "spark/slimming.py"):  # the images' builds run them
        assert f"fraud_filter/files/{file}" in names
    assert not any(name.endswith((".pyc", "/.env")) for name in names)


def test_nothing_of_the_checkout_is_in_use(installed: Installed, tmp_path: Path) -> None:
    shown = installed("config", "--json", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    values = json.loads(shown.stdout)
    for name in ("rules", "payment_schema", "topics_file"):
        assert "site-packages/fraud_filter/files/" in values[name]
        assert Path(values[name]).is_file()


def test_init_overwrites_nothing(installed: Installed, project: Path) -> None:
    again = installed("init", ".", cwd=project)
    assert again.returncode == 2
    assert again.stderr == (
        "fraud-filter: . has conf/rules.yml, conf/blocked-cards.txt, conf/payment.ddl, conf/topics.yml, .env already: "
        "name another directory, or move them away\n"
    )
    assert "one-of-mine" in (project / "conf/rules.yml").read_text()
    assert (project / ".env").stat().st_mode & 0o777 == 0o600


def test_the_project_s_own_rules_are_checked_by_spark(installed: Installed, project: Path) -> None:
    shipped = len(yaml.safe_load((HOME / "app/rules.yml").read_text())["rules"])
    checked = installed("rules", "check", cwd=project)
    assert checked.returncode == 0, checked.stderr
    assert f"{shipped + 1} rules" in checked.stdout


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_a_demo_runs_on_the_project_s_files(installed: Installed, project: Path) -> None:
    ran = installed("demo", *SHORT, cwd=project)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    report = json.loads((project / "demo-report.json").read_text())
    (mode,) = report["results"]
    assert (report["ok"], mode["lost"], mode["unexpected"]) == (True, 0, 0)
    assert mode["flagged"] > mode["decisions"] > 100
