"""docs/your-stream.md, followed word by word: its files, and each of its commands on a real Kafka and a real Spark."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fraud_filter.home import HOME
from lab.harness.broker import Broker
from lab.harness.processes import Child, free_ports
from running import wait_until

PAGE = (HOME / "docs/your-stream.md").read_text(encoding="utf-8")


def files() -> dict[str, str]:
    """The files that the page has the reader write, by name."""
    return dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def commands() -> list[str]:
    """The lines that the page has the reader call, in their order."""
    return [
        line
        for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]


class Reader:
    """Somebody who calls each line in one shell's environment; `run` stays in the background."""

    def __init__(self, directory: Path, broker: str) -> None:
        self.directory = directory
        self.environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        self.environment["FRAUD_METRICS_PORT"] = str(*free_ports(1))  # 9400 may be another test's
        self.broker = broker
        self.said: dict[str, str] = {}

    def export(self, line: str) -> None:
        given = dict(each.split("=", 1) for each in line.removeprefix("export ").split())
        if "KAFKA_BOOTSTRAP_SERVERS" in given:
            given["KAFKA_BOOTSTRAP_SERVERS"] = self.broker  # the tests' broker has a port of its own
        self.environment |= given

    def call(self, line: str, codes: Sequence[int] = (0,)) -> str:
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.directory, env=self.environment, capture_output=True, text=True, timeout=250, check=False,
        )  # fmt: skip
        assert done.returncode in codes, (line, done.stdout, done.stderr)
        return done.stdout


@pytest.mark.timeout(600)  # eight programs, two of them with a Spark
def test_every_command_of_the_page_does_what_the_page_says(broker: Broker, admin: Any, tmp_path: Path) -> None:
    for name, text in files().items():
        (tmp_path / name).write_text(text)
    assert set(files()) == {"readings.ddl", "rules.yml", "readings.jsonl", "readings.sql", "export.csv"}
    reader = Reader(tmp_path, broker.address)
    lines = commands()
    at = next(number for number, line in enumerate(lines) if line.startswith("fraud-filter run "))
    for line in lines[:at]:
        if line.startswith("export "):
            reader.export(line)
        else:
            reader.said[line] = reader.call(line)
    assert "4 rules OK" in reader.said["fraud-filter rules check"]
    tried = reader.said["fraud-filter rules test readings.jsonl"]
    for rule in ("too-hot", "cold-battery", "old-firmware", "stolen-device"):
        assert rule in tried, tried
    log = tmp_path / "run.log"
    own = {name: value for name, value in reader.environment.items() if os.environ.get(name) != value}
    with Child("the filter", ["bash", "-c", f"cd {tmp_path} && exec {lines[at]}"], log=log, env=own) as program:
        wait_until(lambda: "event=started" in log.read_text(), "the query runs", program, 240)
        send, look, health, make, audit, replay = lines[at + 1 :]
        reader.call(send)
        found: list[dict[str, Any]] = []

        def all_are_there() -> bool:
            found[:] = [json.loads(line) for line in reader.call(look).splitlines()]
            return len(found) >= 4

        wait_until(all_are_there, "four readings are flagged", program)
        decided = {one["value"]["reading_id"]: one["value"]["rules"] for one in found}
        assert decided == {
            "r-2": ["too-hot"],
            "r-3": ["cold-battery"],
            "r-4": ["old-firmware"],
            "r-5": ["stolen-device"],
        }
        hot = next(one["value"] for one in found if one["value"]["reading_id"] == "r-2")
        assert (hot["site"], hot["alarms"]) == ({"building": "B", "floor": -1}, ["heat", "smoke"])
        wait_until(lambda: "active" in reader.call(health, (0, 1)), "its monitor has seen them too", program)
        assert "500 sent to readings" in reader.call(make)
        assert "2 sent to readings" in reader.call(replay)

        def all_are_decided() -> bool:
            found[:] = [json.loads(line) for line in reader.call(look).splitlines()]
            return any(one["key"] == "dev-2" for one in found)

        wait_until(all_are_decided, "the last reading is flagged", program)
        assert program.stop(60) == 0, program.tail()
    assert "nothing lost, nothing unexpected" in reader.call(audit)
    admin.delete_topics(["readings", "readings.flagged", "readings.rejected"])
