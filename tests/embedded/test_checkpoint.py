"""Checkpoints on a real Hadoop file system: read, repaired, and repaired again after a kill at any moment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args

import pytest
from py4j.protocol import REFLECTION_COMMAND_NAME

from dying_repairs import Careless, Dying, Killed, is_startable, open_as, require_completed_after_each_kill
from exhaustive import exhaustive
from fraud_filter.checkpoint.contents import read_contents
from fraud_filter.checkpoint.entries import BrokenEntryError
from fraud_filter.checkpoint.files import CheckpointError, CheckpointFiles, GoneError
from fraud_filter.checkpoint.inspection import inspect_checkpoint
from fraud_filter.checkpoint.notes import (
    INPUT,
    LOSSES,
    Input,
    KeptState,
    Loss,
    add_losses,
    note_state,
)
from fraud_filter.checkpoint.notes import STATE as KEPT_STATE
from fraud_filter.checkpoint.plan import Write
from fraud_filter.checkpoint.repair import STATE, finish, prepare_checkpoint, repair, restart
from fraud_filter.config import ModeName, load
from fraud_filter.errors import UsageError
from fraud_filter.lock.checkpoint_lock import NAME, checkpoint_lock
from running import PROGRAM, call, until

RECORDED = Path(__file__).parents[1] / "data" / "checkpoints"
MODES = get_args(ModeName)
Opener = Callable[[Path], CheckpointFiles]


@pytest.fixture
def opened(spark: Any) -> Opener:
    def open_files(path: Path) -> CheckpointFiles:
        return CheckpointFiles(spark._jvm, spark.sparkContext._gateway, spark._jsc.hadoopConfiguration(), str(path))

    return open_files


@pytest.fixture
def checkpoint(tmp_path: Path, opened: Opener) -> Path:
    """What a killed continuous query left, with the checksums that Hadoop writes."""
    files = opened(tmp_path / "checkpoint")
    recorded = RECORDED / "continuous-killed"
    for path in recorded.rglob("*"):
        if path.is_file():
            files.write(str(path.relative_to(recorded)), path.read_bytes())
    return tmp_path / "checkpoint"


def logs(directory: Path) -> dict[str, bytes]:
    """Offset and commit entries."""
    paths = [path for log in ("offsets", "commits") for path in (directory / log).iterdir() if path.name.isdigit()]
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


def test_checksums_of_entries_that_are_gone_are_dropped_and_no_others(checkpoint: Path, opened: Opener) -> None:
    """Spark renames over an entry's checksum never: with one left there it would not commit that epoch."""
    files = opened(checkpoint)
    (checkpoint / "commits" / "3").unlink()
    assert (checkpoint / "commits" / ".3.crc").exists()
    assert files.drop_stray_checksums("commits") == [".3.crc"]
    assert not (checkpoint / "commits" / ".3.crc").exists()
    assert (checkpoint / "commits" / ".2.crc").exists()
    assert files.drop_stray_checksums("commits") == files.drop_stray_checksums("no-such-log") == []


def test_a_written_file_is_read_back_and_its_checksum_is_right(tmp_path: Path, opened: Opener) -> None:
    files = opened(tmp_path)
    files.write("offsets/3", b"first")
    files.write("offsets/3", b"second")
    assert files.read("offsets/3") == b"second"
    assert files.names("offsets") == ["3"]
    assert (tmp_path / "offsets" / ".3.crc").exists()
    (tmp_path / "offsets" / "3").write_bytes(b"sEcond")
    with pytest.raises(BrokenEntryError, match="checksum"):
        files.read("offsets/3")


def test_a_look_into_it_searches_no_jars_for_a_class(
    tmp_path: Path, spark: Any, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A running filter looks twice a second, and its payments wait meanwhile."""
    files = opened(tmp_path)
    files.write("kept", b"it")
    client, sent = spark.sparkContext._gateway._gateway_client, []
    send = client.send_command

    def note(command: str, *arguments: Any, **options: Any) -> Any:
        sent.append(command)
        return send(command, *arguments, **options)

    monkeypatch.setattr(client, "send_command", note)
    assert (files.exists("none"), files.read("kept")) == (False, b"it")
    assert sent
    assert not [command for command in sent if command.startswith(REFLECTION_COMMAND_NAME)]


def test_a_repair_keeps_the_old_logs_and_a_second_one_does_nothing(checkpoint: Path, opened: Opener) -> None:
    files, before = opened(checkpoint), logs(checkpoint)
    done = repair(files, "micro-batch")
    assert done.kept_aside is not None
    assert logs(checkpoint / done.kept_aside) == before
    changed = {path for path in before if logs(checkpoint).get(path) != before[path]}
    assert changed == {"offsets/3", "offsets/4"}
    assert repair(files, "micro-batch").kept_aside is None
    assert read_contents(files).kept_aside == (done.kept_aside,)


def test_one_generation_of_old_logs_is_kept(checkpoint: Path, opened: Opener) -> None:
    files = opened(checkpoint)
    repair(files, "micro-batch", clock=lambda: 1_000_000_000)
    files.write("offsets/4", files.read("offsets/3"))
    second = repair(files, "real-time", clock=lambda: 1_000_000_060)
    assert second.kept_aside == "before-repair-20010909T014740Z"
    assert read_contents(files).kept_aside == (second.kept_aside,)


@pytest.mark.parametrize(
    ("path", "length", "proven"),
    [("offsets/3", 0, 2), ("offsets/3", 20, 2), ("commits/3", 0, 2), ("commits/3", 5, 2), ("offsets/4", 1, 3)],
)
def test_a_newest_entry_that_a_full_disk_cut_off_is_repaired(
    checkpoint: Path, opened: Opener, path: str, length: int, proven: int
) -> None:
    files = opened(checkpoint)
    (checkpoint / path).write_bytes((checkpoint / path).read_bytes()[:length])
    before = logs(checkpoint)
    done = repair(files, "micro-batch")
    assert is_startable(files, "micro-batch")
    found = read_contents(files)
    assert (found.proven and found.proven.number, found.committed, found.pending) == (proven, proven, [])
    assert done.kept_aside is not None
    assert logs(checkpoint / done.kept_aside) == before


@pytest.fixture
def purged(checkpoint: Path, spark: Any) -> Path:
    """The same with its newest entries alone, as Spark keeps them."""
    for old in ("offsets/0", "offsets/1", "offsets/2", "commits/0", "commits/1", "commits/2"):
        open_as(CheckpointFiles, spark, str(checkpoint)).remove(old)
    return checkpoint


@pytest.mark.parametrize("mode", ["micro-batch", "real-time"])
def test_a_repair_that_dies_at_any_change_is_completed_by_the_next(purged: Path, spark: Any, mode: ModeName) -> None:
    changes = require_completed_after_each_kill(spark, str(purged), mode)
    assert changes > 8  # copies of the logs, two states, a removal, a write in steps


@pytest.mark.parametrize(("then", "step"), [pytest.param(None, 1, marks=pytest.mark.exhaustive), ("continuous", 3)])
def test_so_is_one_on_a_store_where_nothing_is_atomic(
    purged: Path, spark: Any, then: ModeName | None, step: int
) -> None:
    """An object store copies and removes file by file, and has no rename; on this one even files are torn."""
    assert require_completed_after_each_kill(spark, str(purged), "micro-batch", then, Careless, step) > 25


@pytest.mark.parametrize("kind", exhaustive([Dying, Careless], but=[Careless]))
def test_a_change_of_the_state_that_dies_is_completed_by_the_next_start(
    purged: Path, spark: Any, kind: type[Dying]
) -> None:
    """It ends with empty logs, no state and both notes, whenever it was killed."""
    location = str(purged)
    settings = load({"mode": "real-time", "checkpoint": location})
    former = open_as(CheckpointFiles, spark, location)
    former.write("state/0/1.delta", b"x")
    note_state(former, KeptState([["spent"]], 2, 50))
    INPUT.write(former, Input("payments", "id", {0: 1}))
    state, place = KeptState([["paid"]], 2, 50), Input("payments", "id", {0: 1}, {0: 5}, {0: 9})
    notes = [Write(KEPT_STATE.path, KEPT_STATE.content(state)), Write(INPUT.path, INPUT.content(place))]
    for changes in range(300):
        copy = f"{location}-{changes}"
        shutil.copytree(purged, copy)
        dying = open_as(kind, spark, copy)
        dying.left, died = changes, False
        try:
            restart(dying, settings, notes, "features changed")
        except Killed:
            died = True
        left = open_as(CheckpointFiles, spark, copy)
        finish(left)
        if KEPT_STATE.read(left) != state:
            restart(left, settings, notes, "features changed")
        prepare_checkpoint(left, settings)
        contents = read_contents(left)
        assert (list(contents.offsets), list(contents.commits), contents.stateful) == ([], [], False)
        assert (KEPT_STATE.read(left), INPUT.read(left)) == (state, place)
        assert STATE not in left.names()
        if not died:
            assert changes > 10
            return
    raise AssertionError("the change never came to its end")


def test_a_file_on_a_local_disk_is_replaced_and_never_away(tmp_path: Path, opened: Opener) -> None:
    """Hadoop's own rename over a file removes it first."""
    files = opened(tmp_path)
    files.write("log/7", b"0")
    missing, stop = [], threading.Event()

    def look() -> None:
        while not stop.is_set():
            try:
                (tmp_path / "log/7").read_bytes()
            except FileNotFoundError:
                missing.append(True)

    with ThreadPoolExecutor(1) as beside:
        beside.submit(look)
        for number in range(30):
            files.write("log/7", str(number).encode())
        stop.set()
    assert files.read("log/7") == b"29"
    assert missing == []


class Purged(CheckpointFiles):
    """Those of a running query, which removes its oldest entries in the moment in which one is read."""

    purges = 1

    def read(self, path: str) -> bytes:
        if self.purges and path == "commits/1":
            self.purges -= 1
            for log in ("offsets", "commits"):
                self.remove(f"{log}/1")
        return super().read(path)


def test_a_checkpoint_is_inspected_while_its_query_removes_entries(checkpoint: Path, spark: Any) -> None:
    found = inspect_checkpoint(open_as(Purged, spark, str(checkpoint)), 0)
    assert (found.newest_entry, found.newest_commit) == (4, 3)
    with pytest.raises(GoneError, match="commits/1"):
        open_as(CheckpointFiles, spark, str(checkpoint)).read("commits/1")


def require_inspection(checkpoint: Path, found: dict[str, Any]) -> None:
    assert (found["newest_entry"], found["newest_commit"]) == (4, 3)
    assert (found["pending"], found["proven_entry"], found["broken"]) == ([4], 3, {})
    assert found["committed_offsets"] == [json.loads((checkpoint / "offsets/3").read_text().splitlines()[2])]
    assert not any(found["modes"][mode]["startable"] for mode in MODES)  # epoch 4 is pending
    assert all(found["modes"][mode]["repairable"] for mode in MODES)


def test_a_repair_and_a_filter_keep_each_other_out_and_a_look_needs_no_lock(checkpoint: Path) -> None:
    """Whoever holds it, here this process in their place."""
    settings = load({"checkpoint": str(checkpoint)})
    before = logs(checkpoint)
    with checkpoint_lock(settings):
        refused = call("checkpoint", "repair", checkpoint)
        told = call("checkpoint", "inspect", checkpoint)
    assert told.returncode == 0, told.stderr
    require_inspection(checkpoint, json.loads(told.stdout))
    assert refused.returncode == 2
    (message,) = refused.stderr.splitlines()
    assert f"argument PATH: a filter (process {os.getpid()}) works on" in message
    assert logs(checkpoint) == before
    with checkpoint_lock(settings, "repair"), pytest.raises(UsageError, match=r"a repair \(process \d+\) works on"):
        checkpoint_lock(settings).__enter__()


def test_a_repair_holds_the_lock_while_it_works(checkpoint: Path) -> None:
    argv = [*PROGRAM, "checkpoint", "repair", str(checkpoint), "--to", "real-time"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as program:
        ours = f"repair (process {program.pid})"
        until(lambda: (checkpoint / NAME).exists() and ours in (checkpoint / NAME).read_text(), "the lock")
        with pytest.raises(UsageError) as refused, checkpoint_lock(load({"checkpoint": str(checkpoint)})):
            pass
        said, _ = program.communicate(timeout=240)
    assert program.returncode == 0
    assert "real-time mode can start from it now; the old logs are in" in said
    assert f"a {ours} works on" in str(refused.value)


@pytest.mark.parametrize(
    ("verb", "path", "said"),
    [
        ("repair", "none", "is no checkpoint: it has neither metadata nor offsets nor commits"),
        ("inspect", "nosuch://place/checkpoint", 'No FileSystem for scheme "nosuch"'),
    ],
)
def test_what_is_no_checkpoint_is_refused_in_a_sentence(tmp_path: Path, verb: str, path: str, said: str) -> None:
    refused = call("checkpoint", verb, path if "://" in path else tmp_path / path)
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1].startswith("fraud-filter: argument PATH: ")
    assert refused.stderr.splitlines()[-1].endswith(said)
    assert "Traceback" not in refused.stderr


def test_directories_in_place_of_files_are_broken_entries(checkpoint: Path, opened: Opener) -> None:
    files = opened(checkpoint)
    for path in ("metadata", "offsets/4", "commits/3", "sources/0/0"):
        (checkpoint / path).unlink(missing_ok=True)
        (checkpoint / path).mkdir(parents=True)
    found = inspect_checkpoint(files, 0)
    assert found.broken == {"offsets/4": "it is a directory", "commits/3": "it is a directory"}
    assert (found.query_id, found.newest_commit, found.pending) == (None, 2, [3, 4])
    repair(files, "micro-batch")
    assert is_startable(files, "micro-batch")
    assert inspect_checkpoint(files, 0).broken == {}


def test_names_that_are_no_numbers_to_spark_are_no_entries(checkpoint: Path, opened: Opener) -> None:
    before = inspect_checkpoint(opened(checkpoint), 0)
    for name in ("²", "٣", "007", "9" * 30, "-1", "+5", "x"):
        (checkpoint / "offsets" / name).write_bytes(os.urandom(99))
        (checkpoint / "commits" / name).mkdir()
    assert inspect_checkpoint(opened(checkpoint), 0) == before


@pytest.mark.parametrize("log", ["offsets", "commits", "sources", "state"])
def test_a_file_in_place_of_a_directory_is_refused(tmp_path: Path, opened: Opener, log: str) -> None:
    (tmp_path / log).write_text("x")
    for work in (lambda: inspect_checkpoint(opened(tmp_path), 0), lambda: repair(opened(tmp_path), "continuous")):
        with pytest.raises(UsageError, match=rf"is none: {log} is a file, where a directory belongs"):
            work()


@pytest.mark.parametrize(
    "content",
    [
        *("[]", "3", "{}", '{"copy": 3}', '{"copy": "before-repair-1", "steps": [[1, null]]}'),
        '{"copy": "../x", "steps": []}',
        '{"copy": "before-repair-1", "steps": [["../elsewhere", null]]}',
        '{"copy": "before-repair-1", "steps": [["offsets/3", 5]]}',
    ],
)
def test_a_record_of_a_repair_that_is_none_is_refused(checkpoint: Path, opened: Opener, content: str) -> None:
    kept = checkpoint.parent / "elsewhere"
    kept.write_text("kept")
    (checkpoint / STATE).write_text(content)
    before = logs(checkpoint)
    with pytest.raises(UsageError, match=f"{STATE} can't be read as what an earlier repair left"):
        repair(opened(checkpoint), "micro-batch")
    assert (logs(checkpoint), kept.read_text()) == (before, "kept")


def test_what_is_kept_beside_the_logs(tmp_path: Path, opened: Opener) -> None:
    files = opened(tmp_path)
    assert INPUT.read(files) is None
    for kept in (Input("payments", "id-1", {0: 5, 1: 7}), Input("payments", "id-2", {})):
        INPUT.write(files, kept)
        assert INPUT.read(files) == kept
    (tmp_path / INPUT.path).write_text("{")
    with pytest.raises(UsageError, match=r"fraud-filter/input\.json' can't be read; put back a copy of it"):
        INPUT.read(files)


def test_each_loss_is_noted_once_and_one_that_grows_stays_one(tmp_path: Path, opened: Opener) -> None:
    files = opened(tmp_path)
    assert add_losses(files, [Loss("a", 0, 5, 9, 1.0), Loss("a", 1, 0, 4, 1.0)]) != []
    assert add_losses(files, [Loss("a", 0, 5, 9, 2.0)]) == []
    assert add_losses(files, [Loss("a", 0, 7, 12, 3.0)]) == [Loss("a", 0, 9, 12, 3.0)]
    assert add_losses(files, [Loss("a", 0, 20, 22, 4.0), Loss("b", 0, 0, 2, 4.0)]) != []
    noted = [("a", 0, 5, 12), ("a", 1, 0, 4), ("a", 0, 20, 22), ("b", 0, 0, 2)]
    assert [(loss.topic_id, loss.partition, loss.start, loss.end) for loss in LOSSES.read(files)] == noted


def test_a_file_system_that_refuses_is_told_apart(tmp_path: Path, opened: Opener) -> None:
    (tmp_path / "fraud-filter").write_text("a file where a directory should be")
    with pytest.raises(CheckpointError):
        INPUT.write(opened(tmp_path), Input("payments", "id", {}))
