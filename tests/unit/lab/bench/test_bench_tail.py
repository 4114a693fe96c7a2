"""When a query of the user's has written all that it will."""

from __future__ import annotations

import pytest

from lab.bench.readback import QuietTail


def test_a_query_is_done_when_rows_came_and_no_more_come(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    rows = iter([0, 0, 0, 0, 7, 7, 8, 8, 8, 8])
    tail = QuietTail(lambda: next(rows))
    assert not tail.has_begun()
    now_s[0] += 6
    assert not tail.has_passed({0: 1})  # nothing came yet
    assert not tail.has_passed({0: 1})  # rows come
    assert not tail.has_passed({0: 1})
    now_s[0] += 6
    assert tail.has_passed({0: 1})
