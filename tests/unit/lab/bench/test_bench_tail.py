"""When a query of the user's has written all that it will."""

from __future__ import annotations

import time

import pytest

from lab.bench import readback
from lab.bench.readback import QuietTail


def test_a_query_is_done_when_rows_came_and_no_more_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readback, "_QUIET_S", 0.05)
    rows = iter([0, 0, 0, 0, 7, 7, 8, 8, 8, 8])
    tail = QuietTail(lambda: next(rows))
    assert not tail.has_begun()
    time.sleep(0.06)
    assert not tail.has_passed({0: 1})  # nothing came yet
    assert not tail.has_passed({0: 1})  # rows come
    assert not tail.has_passed({0: 1})
    time.sleep(0.06)
    assert tail.has_passed({0: 1})
