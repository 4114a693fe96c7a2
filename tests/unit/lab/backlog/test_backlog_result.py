"""What is written about the working off of a backlog."""

from __future__ import annotations

import json
from pathlib import Path

from lab.backlog.result import CatchUp, markdown_table, write_backlog
from lab.harness.outcome import Audited

DONE = CatchUp("continuous", 2_000_000, 9.5, 40.0, 1200 << 20, Audited(0, 17, 0))
FAILED = CatchUp("real-time", 2_000_000, error="it had not decided all payments after 60 s")


def test_a_mode_is_well_when_all_was_decided() -> None:
    assert DONE.ok
    assert not FAILED.ok
    assert not CatchUp("continuous", 10, 1.0, 1.0, 0, Audited(1, 0, 0)).ok


def test_the_file_has_settings_and_speed(tmp_path: Path) -> None:
    file = tmp_path / "backlog.json"
    write_backlog(file, [DONE, FAILED], {"max_offsets_per_trigger": None})
    document = json.loads(file.read_text())
    assert document["settings"] == {"max_offsets_per_trigger": None}
    assert [one["records_per_second"] for one in document["results"]] == [50_000, None]
    assert document["results"][0]["lost"] == 0


def test_the_documentation_has_a_line_a_mode() -> None:
    assert markdown_table([DONE, FAILED]).splitlines()[2:] == [
        "| `continuous` | 2,000,000 | 9.5 | 40.0 | 50,000 | 1,200 | 0 | 17 |",
        "| `real-time` | 2,000,000 | - | - | - | 0 | - | - |",
    ]
