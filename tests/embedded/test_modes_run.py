"""Every mode against the real broker: what arrives, with which headers, what it serves, silent stops, a restart."""

from __future__ import annotations

import json
import time
from contextlib import closing
from typing import get_args

import pytest
import requests

from faults import Decisions, Feed, events, said_while_stopping
from fraud_filter.audit.run import audit
from fraud_filter.config import ModeName
from fraud_filter.metrics.catalogue import (
    CATALOGUE,
    CERTIFICATE_EXPIRY,
    HELD_SINCE,
    MODEL,
    VELOCITY_COMMIT,
    VELOCITY_DISK,
    VELOCITY_KEYS,
    VELOCITY_MEMORY,
)
from lab.harness.processes import Child, free_ports
from metrics_page import Page
from running import Stage, payment, refusal, until, wait_until

MODES = get_args(ModeName)
MALFORMED = {"bad-1": b"no json", "bad-2": b'{"payment_id": "x"}', "bad-3": b"\xff\x00", "bad-4": None}
REASONS = {
    "bad-1": "malformed-json",
    "bad-2": "missing-field: card_id,amount,currency,country,created_at",
    "bad-3": "malformed-json",
    "bad-4": "empty-record",
}
#: Spark's page takes long for its first answer, on a busy machine, in seconds.
_PAGE_S = 60
#: Batches of real-time mode that end within the test.
SHORT = "10 seconds"
Places = list[tuple[int, int]]


def send(stage: Stage, first: int, count: int) -> Places:
    """Payments, every second one to be flagged."""
    numbers = range(first, first + count)
    return stage.send((f"c{n % 7}", payment(f"p{n}", 6000 if n % 2 else 6)) for n in numbers)


def stop(program: Child) -> None:
    """It says nothing but that; whatever Spark logs of the tasks that it kills is no news."""
    assert program.stop(30) == 0, program.tail()
    assert said_while_stopping(program) == []
    assert events(program, "stopped")


@pytest.mark.parametrize("mode", MODES)
def test_all_is_decided_and_served_over_a_stop_at_rest_a_restart_and_a_stop_under_load(
    stage: Stage, mode: ModeName
) -> None:
    """One checkpoint; real-time mode's first batch is cut off by the stop, so that its decisions are made again."""
    places = require_each_record_where_it_belongs(stage, mode)
    places += send(stage, 0, 100)
    page, (ui_port,) = Page(*free_ports(1)), free_ports(1)
    own = {"metrics_port": str(page.port), "ui_port": str(ui_port), "real_time_duration": SHORT}
    with (
        stage.run(mode=mode, **own) as program,
        closing(Decisions(stage)) as decisions,
    ):
        await_committed(page, places, program)
        counted = page.values("fraud_filter_input_records_total")[""]
        places += (more := send(stage, 100, 40))
        await_committed(page, places, program)
        has_counted = lambda: page.values("fraud_filter_input_records_total")[""] - counted == len(more)  # noqa: E731
        wait_until(has_counted, "they are counted", program)
        require_all_is_served(page, mode, places, program)
        if mode == "continuous":  # the job of an epoch lasts as long as the query
            require_no_link_ends_a_job_or_counts_the_heap(f"http://127.0.0.1:{ui_port}")
        if mode in ("continuous", "micro-batch"):
            assert {str(number): at for number, at in stage.committed().items()} == ends(places)
        result = audit(stage.settings())
        assert (result.expected, result.rejected_expected, result.lost, result.unexpected) == (90, 4, 0, 0), result
        with Feed(stage, rate=400) as feed:
            now = decisions.ends()
            wait_until(lambda: decisions.fresh(now), "fresh decisions", program)
            stop(program)
            feed.stop()


def require_each_record_where_it_belongs(stage: Stage, mode: str) -> Places:
    """Runs the filter as it is shipped over records of all kinds, and stops it at rest."""
    flagged = {f"f{n}": payment(f"f{n}", 5000 + n) for n in range(20)}
    passed = {f"p{n}": payment(f"p{n}", 10 + n) for n in range(20)}
    records = [*flagged.items(), *passed.items(), *MALFORMED.items()]
    places = dict(zip((key for key, _ in records), stage.send(records), strict=True))
    with stage.run(mode=mode) as program:
        wait_until(
            lambda: sum(map(len, stage.written().values())) >= len(flagged) + len(MALFORMED),
            "all flagged and rejected records are written", program,
        )  # fmt: skip
        stop(program)
    written = stage.written()
    assert sorted(record.key.decode() for record in written[stage.flagged]) == sorted(flagged)
    assert {record.key.decode(): record.value for record in written[stage.rejected]} == MALFORMED
    for record in written[stage.flagged] + written[stage.rejected]:
        headers = {name: value.decode() for name, value in record.headers}
        partition, offset = places[record.key.decode()]
        assert headers["source.topic"] == stage.input
        assert (int(headers["source.partition"]), int(headers["source.offset"])) == (partition, offset)
        assert 0 <= record.timestamp - int(headers["source.timestamp"]) < 600_000
        if record.topic == stage.rejected:
            assert headers["reject.reason"] == REASONS[record.key.decode()]
        else:
            assert "reject.reason" not in headers
            assert json.loads(record.value)["rules"] == ["large-amount"]
    return list(places.values())


def ends(places: Places) -> dict[str, float]:
    """Next offset to read, by partition, when all at these places is read."""
    return {str(number): max(at for part, at in places if part == number) + 1.0 for number, _ in places}


def await_committed(page: Page, places: Places, program: Child) -> None:
    wait_until(lambda: page.values("fraud_filter_committed_offset") == ends(places), "all is committed", program)


def require_all_is_served(page: Page, mode: ModeName, places: Places, program: Child) -> None:
    """Each series of the catalogue that the mode has, and figures that fit."""
    wait_until(lambda: bool(page.values("fraud_filter_executor_peak_memory_bytes")), "an executor's heartbeat", program)
    entries = [entry for entry in CATALOGUE if entry.program == "filter" and mode in entry.modes]
    expected = {entry.name: (entry.type, tuple(sorted(entry.labels))) for entry in entries}
    for absent in (
        CERTIFICATE_EXPIRY,
        HELD_SINCE,
        MODEL,
        VELOCITY_KEYS,
        VELOCITY_MEMORY,
        VELOCITY_DISK,
        VELOCITY_COMMIT,
    ):
        expected.pop(absent.name, None)  # no certificates, nothing that a transaction holds, no model, no features
    of_filter = {name: series for name, series in page.shape().items() if name.startswith("fraud_filter_")}
    assert {name: series for name, series in of_filter.items() if not name.endswith("_created")} == expected
    assert page.values("fraud_filter_latest_offset") == ends(places)
    assert set(page.values("fraud_filter_consumer_lag_records").values()) == {0.0}
    assert page.values("fraud_filter_commits_total")[""] >= 1
    assert time.time() - page.values("fraud_filter_last_progress_timestamp_seconds")[""] < 120
    assert page.values("fraud_filter_healthy") == {"": 1.0}


def require_no_link_ends_a_job_or_counts_the_heap(page: str) -> None:
    """Of Spark's page, whose links any other page in a browser could follow. All threads stop for a count."""

    def ask(path: str, method: str = "GET", *, follow: bool = False) -> requests.Response:
        return requests.request(method, f"{page}/{path}", timeout=_PAGE_S, allow_redirects=follow)

    (application,) = ask("api/v1/applications").json()
    jobs = f"api/v1/applications/{application['id']}/jobs"
    assert "java.lang.String" not in ask("executors/heapHistogram/?executorId=driver", follow=True).text
    (job,) = ask(jobs).json()
    for link, number in (("jobs/job/kill", job["jobId"]), ("stages/stage/kill", job["stageIds"][0])):
        for method in ("GET", "POST"):
            ask(f"{link}/?id={number}", method)
        # A job that was asked to end is no longer there, or says so, when the next request is answered.
        for _ in range(20):
            assert [each["status"] for each in ask(jobs).json()] == ["RUNNING"], link


def test_what_comes_after_a_pause_counts(stage: Stage) -> None:
    """Spark tells of a trigger without data under the number of the batch that comes next."""
    page = Page(*free_ports(1))

    def counted() -> tuple[dict[str, float], set[float]]:
        rows, lags = (page.values(f"fraud_filter_{name}") for name in ("input_records_total", "consumer_lag_records"))
        return rows, set(lags.values())

    with stage.run(mode="micro-batch", metrics_port=str(page.port)) as program:
        wait_until(lambda: page.values("fraud_filter_up") == {"": 1.0}, "the query runs", program)
        for sent in (10, 20):
            time.sleep(12)  # Spark does so once at first, and then every 10 seconds
            stage.send((f"c{n}", payment(f"p{n}", 12)) for n in range(10))
            until(lambda sent=sent: counted() == ({"": sent}, {0.0}), f"{sent} are counted")  # type: ignore[misc]
            committed = [entry.name for entry in (stage.directory / "checkpoint/commits").iterdir()]
            assert page.values("fraud_filter_commits_total")[""] == sum(name.isdigit() for name in committed)
        assert program.stop(30) == 0, program.tail()


def test_too_few_task_slots_are_refused_with_both_numbers(stage: Stage) -> None:
    """As of each mode that holds one a partition (`holds_tasks`)."""
    program = stage.run(mode="continuous")
    program._env["SPARK_MASTER"] = "local[1]"
    message = refusal(program.start(), 2)
    assert "has 2 partitions, the application was granted 1 task slots" in message
    assert "1 partitions would never be read; set SPARK_MASTER=local[2]" in message
