"""The only polling loop of these tests."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(what: str, question: Callable[[], T], timeout_s: float = 180, every_s: float = 0.5) -> T:
    """Asks until the answer is true, and returns it; a question that fails is asked again.

    Raises:
        AssertionError: it was not true within `timeout_s` seconds; has the last answer or error.
    """
    end = time.monotonic() + timeout_s
    last: object = None
    while time.monotonic() < end:
        try:
            answer = question()
            if answer:
                return answer
            last = answer
        except Exception as error:
            last = error
        time.sleep(every_s)
    raise AssertionError(f"{what}: not within {timeout_s:.0f} s; last seen: {last!r}")
