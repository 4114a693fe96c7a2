"""The record of how long tests take: what it orders, and what stays in it after a run."""

from __future__ import annotations

from pathlib import Path

from durations import in_order, merged


def test_the_longest_file_begins_first_and_one_that_is_not_recorded_neither_first_nor_last() -> None:
    recorded = {"a.py::one": 4.0, "a.py::two": 3.0, "b.py::one": 90.0, "b.py::left_out": 900.0, "c.py::one": 95.0}
    rank = in_order(["a.py::one", "a.py::two", "b.py::one", "c.py::one", "new.py::one"], recorded)
    assert sorted(rank, key=lambda file: rank[file]) == ["c.py", "b.py", "new.py", "a.py"]


def test_a_run_replaces_what_it_measured_and_keeps_what_other_runs_did(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def test_one(mode):\n    ...\ndef test_two():\n    ...\n")
    recorded = {"a.py::test_one[x]": 5.0, "a.py::test_two": 7.0, "a.py::test_gone": 9.0, "gone.py::test_one": 9.0}
    assert merged(recorded, {"a.py::test_two": 6.04, "a.py::test_quick": 0.2}, tmp_path) == {
        "a.py::test_one[x]": 5.0,
        "a.py::test_two": 6.0,
    }
