"""Changes of settings in a contender's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from fraud_filter.errors import UsageError
from lab.bench.changes import parse_change


def test_a_change_is_checked() -> None:
    change = parse_change('linger_ms=5; spark_conf={"spark.sql.codegen.wholeStage": "false"}')
    assert change.others == {"linger_ms": 5, "spark_conf": {"spark.sql.codegen.wholeStage": "false"}}
    assert change.decided == {}


def test_generator_and_audit_get_what_decides() -> None:
    change = parse_change("max_record_bytes=2000;linger_ms=5")
    assert (change.decided, change.others) == ({"max_record_bytes": 2000}, {"linger_ms": 5})


def test_partitions_are_a_change_too() -> None:
    change = parse_change("partitions=8;linger_ms=5")
    assert (change.partitions, change.others) == (8, {"linger_ms": 5})
    assert parse_change("linger_ms=5").partitions == 0


def test_checkpoints_lie_where_a_change_wants_them(tmp_path: Path) -> None:
    assert parse_change(f"checkpoint={tmp_path};linger_ms=5").checkpoints == tmp_path
    assert parse_change("linger_ms=5").checkpoints is None


def test_a_place_for_checkpoints_does_not_depend_on_where_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "disk").mkdir()
    monkeypatch.chdir(tmp_path)
    assert parse_change("checkpoint=disk").checkpoints == tmp_path / "disk"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("linger=5", "'linger=5' is not accepted: give SETTING=VALUE"),
        ("linger_ms", "'linger_ms' is not accepted"),
        ("", "'' is not accepted"),
        ("partitions=0", "'partitions=0' is not accepted: give a whole number from 1 to 64"),
        ("partitions=two", "'partitions=two' is not accepted"),
        ("rule_count=20", "rule_count is gone: write such rules, and name them: rules=FILE"),
        ("linger_ms=-1", r"setting linger_ms .*'-1' is not accepted"),
        ("linger_ms=5;mode=real-time", "'mode=real-time' is not accepted: the bench sets mode itself"),
        ("checkpoint=no/such", "'checkpoint=no/such' is not accepted: give a directory that exists"),
    ],
)
def test_what_is_no_change_is_refused_in_words(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_change(text)
