"""Spark's page of a running query ends nothing: any other page in a browser on this machine could follow its links."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import requests

from lab.harness.processes import free_ports
from running import Stage, wait_until


def _jobs(page: str) -> list[Any]:
    """The jobs; none while the page is not there."""
    with suppress(requests.RequestException):
        (application,) = requests.get(f"{page}/api/v1/applications", timeout=5).json()
        return list(requests.get(f"{page}/api/v1/applications/{application['id']}/jobs", timeout=5).json())
    return []


def test_no_link_ends_a_job_or_counts_the_heap(stage: Stage) -> None:
    """All threads stop while the heap is counted."""
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    # The job of an epoch lasts as long as the query.
    with stage.run(mode="continuous", ui_port=str(port)) as program:
        wait_until(lambda: bool(_jobs(url)), "a job runs", program)
        answer = requests.get(f"{url}/executors/heapHistogram/?executorId=driver", timeout=20)
        assert "java.lang.String" not in answer.text
        (job,) = _jobs(url)
        for link, number in (("jobs/job/kill", job["jobId"]), ("stages/stage/kill", job["stageIds"][0])):
            for method in ("GET", "POST"):
                requests.request(method, f"{url}/{link}/?id={number}", timeout=5, allow_redirects=False)
            # A job that was asked to end is no longer there, or says so, when the next request is answered.
            for _ in range(20):
                assert [each["status"] for each in _jobs(url)] == ["RUNNING"], link
