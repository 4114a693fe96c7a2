"""Changes of settings in a contender's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from fraud_filter.errors import UsageError
from lab.bench.changes import parse_change


def test_generator_and_audit_get_what_decides() -> None:
    change = parse_change("max_record_bytes=2000;linger_ms=5")
    assert (change.decided, change.others) == ({"max_record_bytes": 2000}, {"linger_ms": 5})


def test_a_place_for_checkpoints_does_not_depend_on_where_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "disk").mkdir()
    monkeypatch.chdir(tmp_path)
    assert parse_change("linger_ms=5").checkpoints is None
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
