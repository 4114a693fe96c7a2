"""The stack is up: every service, the pages, Prometheus' targets, more workers, and a second `up`."""

from __future__ import annotations

import pytest

from deployed import Deployed
from fraud_filter.compose.stack import execute
from waiting import wait_until


@pytest.mark.parametrize("service", ["spark-master", "spark-worker", "fraud-filter"])
def test_every_java_of_spark_starts_from_the_class_archive(stack: Deployed, service: str) -> None:
    """An executor runs beside its worker. A Java that refuses the archive has let go of it when it runs."""
    (container,) = [state.container for state in stack.open().states() if state.service == service]
    # Programs of health checks end between the listing and the look.
    is_java = '[ "$(cat $p/comm 2>/dev/null)" = java ]'
    script = f"for p in /proc/[0-9]*; do ! {is_java} || grep -c /opt/classes.jsa $p/maps; done 2>&1"
    _, output = execute(container, "sh", "-c", script)
    regions = [int(line) for line in output.decode().split()]
    assert len(regions) == (2 if service == "spark-worker" else 1), output
    assert min(regions) > 0, output


def test_what_a_container_prints_is_had_whole_and_its_errors_where_it_fails(stack: Deployed) -> None:
    (container,) = [state.container for state in stack.open().states() if state.service == "kafka"]
    assert execute(container, "sh", "-c", "echo shown; echo warned >&2") == (0, b"shown\n")
    assert execute(container, "sh", "-c", "echo shown; echo broken >&2; exit 3") == (3, b"shown\nbroken\n")


def test_status_shows_figures_and_ends_with_0(stack: Deployed) -> None:
    def shown() -> str:
        status = stack.call("status")
        assert status.returncode == 0, status.stdout
        assert "p50 -" not in status.stdout, status.stdout
        return status.stdout

    screen = wait_until("status has a latency", shown, every_s=3)
    for word in ("micro-batch", "running, healthy", "/s", " ms", "http://127.0.0.1:"):
        assert word in screen


def test_a_second_worker_joins_the_master_and_a_second_up_changes_nothing(stack: Deployed) -> None:
    def scale(workers: int) -> None:
        up = stack.call("up", "--workers", str(workers))
        assert up.returncode == 0, up.stdout

    def alive() -> int:
        return int(stack.json("SPARK_MASTER_UI_PORT", "/json/")["aliveworkers"])

    scale(2)
    try:
        assert wait_until("two workers", lambda: alive() == 2)
        before = {state.container.id for state in stack.open().states() if not state.one_shot}
        assert stack.call("up").returncode == 0
        assert {state.container.id for state in stack.open().states() if not state.one_shot} == before
    finally:
        scale(1)
