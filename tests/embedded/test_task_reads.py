"""Real-time mode tells lag and rate of each partition between the ends of its batches, minutes apart."""

from __future__ import annotations

import time

import pytest

from faults import Feed, events, java_of
from lab.harness.processes import free_ports
from metrics_page import Page
from running import Stage, payment, wait_until

pytestmark = pytest.mark.timed

#: A heartbeat and a look, or the start's first one.
SOON_S = 15


def offsets(page: Page, name: str) -> dict[str, float]:
    return page.values(f"fraud_filter_{name}")


def test_running_tasks_tell_what_they_have_read_and_no_more(stage: Stage) -> None:
    page = Page(*free_ports(1))
    long = {"mode": "real-time", "real_time_duration": "1 hour", "metrics_port": str(page.port)}
    with stage.run(**long) as program, Feed(stage, rate=100) as feed:
        wait_until(lambda: bool(events(program, "started")), "the query runs", program)
        began = time.monotonic()
        wait_until(lambda: min(offsets(page, "read_offset").values(), default=0) > 0, "both tasks tell", program)
        print(f"measured: told after {time.monotonic() - began:.1f} s")  # noqa: T201
        assert time.monotonic() - began < SOON_S
        assert set(offsets(page, "consumer_lag_records")) == {"0", "1"}
        for _ in range(3):
            before, since = offsets(page, "read_offset"), time.monotonic()
            wait_until(
                lambda: all(now > before[part] for part, now in offsets(page, "read_offset").items()),  # noqa: B023
                "both move on",
                program,
            )
            assert time.monotonic() - since < SOON_S
        sent = feed.stop()
        wait_until(lambda: sum(offsets(page, "read_offset").values()) == sent, "all is told", program)
        wait_until(lambda: set(offsets(page, "consumer_lag_records").values()) == {0.0}, "no lag", program)
        assert offsets(page, "commits_total") == {"": 0}
        assert set(offsets(page, "committed_offset").values()) <= {0.0}
        assert program.stop(30) == 0, program.tail()
    with stage.run(**long) as program:
        # What a stop in the midst of a batch leaves uncommitted is read again, and counts from there.
        wait_until(lambda: sum(offsets(page, "read_offset").values()) == sent, "all is told again", program)
        stage.send((f"c{n}", payment(f"p{n}", 6000)) for n in range(20))
        wait_until(lambda: sum(offsets(page, "read_offset").values()) == sent + 20, "what is new is told", program)
        java = java_of(program)
        java.suspend()  # no task reads, and what arrives meanwhile is lag
        stage.send((f"c{n}", payment(f"q{n}", 12)) for n in range(20))
        wait_until(lambda: sum(offsets(page, "consumer_lag_records").values()) == 20, "it is lag", program)
        java.resume()
        wait_until(lambda: set(offsets(page, "consumer_lag_records").values()) == {0.0}, "no lag", program)
        assert offsets(page, "commits_total") == {"": 0}
        assert program.stop(30) == 0, program.tail()


def test_what_is_told_goes_on_over_the_end_of_a_batch(stage: Stage) -> None:
    page = Page(*free_ports(1))
    short = {"real_time_duration": "20 seconds", "metrics_port": str(page.port)}
    with stage.run(mode="real-time", **short) as program, Feed(stage, rate=100) as feed:
        wait_until(lambda: offsets(page, "commits_total").get("", 0) >= 1, "a batch ends", program)
        seen = [sum(offsets(page, "read_offset").values())]
        ends = [sum(offsets(page, "latest_offset").values())]
        while offsets(page, "commits_total")[""] < 2:
            seen.append(sum(offsets(page, "read_offset").values()))
            ends.append(sum(offsets(page, "latest_offset").values()))
            time.sleep(0.5)
        assert seen == sorted(seen)
        assert len(set(seen)) > 2  # more than the commits alone
        sent = feed.stop()
        wait_until(lambda: sum(offsets(page, "read_offset").values()) == sent, "all is told", program)
        assert program.stop(30) == 0, program.tail()
