"""What interruptions came to: median and worst of each kind, and what is kept of earlier runs."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

from rich.console import Console

from lab.harness.outcome import Audited
from lab.takeover.result import Interruption, markdown_table, result_table, write_takeovers

FINE = Audited(0, 5, 0)


def kill(
    seconds: float | None, *, standby: bool = True, audit: Audited = FINE, error: str = "", stack: bool = False
) -> Interruption:
    return Interruption("kill", "real-time", standby, seconds, seconds and seconds + 1, audit, error, stack)


def test_a_kind_is_a_line_with_median_and_worst(tmp_path: Path) -> None:
    found = [kill(0.5), kill(0.7), kill(2.0, audit=Audited(0, 9, 0)), kill(30.0, standby=False), kill(1.5, stack=True)]
    found += [replace(kill(0.9), cards=100_000), replace(kill(0.4), what="rules", in_turn=True)]
    items = write_takeovers(tmp_path / "takeover.json", found, add=False)
    assert items == json.loads((tmp_path / "takeover.json").read_text())
    assert items[0]["lost"] == 0
    lines = markdown_table(items).splitlines()[2:]
    assert lines == [
        "| kill | `real-time` | yes | no | - | 3 | 0.7 | 2.0 | 3.0 | 0 | 9 | 0 |",
        "| kill | `real-time` | no | no | - | 1 | 30.0 | 30.0 | 31.0 | 0 | 5 | 0 |",
        "| kill | `real-time` | yes | yes | - | 1 | 1.5 | 1.5 | 2.5 | 0 | 5 | 0 |",
        "| kill | `real-time` | yes | no | 100,000 | 1 | 0.9 | 0.9 | 1.9 | 0 | 5 | 0 |",
        "| rules, in turn | `real-time` | yes | no | - | 1 | 0.4 | 0.4 | 1.4 | 0 | 5 | 0 |",
    ]


def test_what_is_lost_and_what_failed_is_no_success() -> None:
    assert kill(0.5).ok
    assert not kill(0.5, audit=Audited(1, 0, 0)).ok
    assert not kill(0.5, audit=Audited(0, 0, 1)).ok
    failed = kill(None, audit=Audited(), error="no decision [came]")
    assert not failed.ok
    console = Console(file=StringIO(), width=200)
    console.print(result_table([failed.to_dict()]))
    assert "no decision [came]" in console.file.getvalue()  # type: ignore[attr-defined]


def test_other_kinds_stay_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "takeover.json"
    write_takeovers(file, [kill(30.0, standby=False)], add=False)
    write_takeovers(file, [kill(0.5), kill(0.6)], add=True)
    assert [item["seconds"] for item in write_takeovers(file, [kill(0.9)], add=True)] == [30.0, 0.9]
