"""The report of a real run: a real Prometheus has scraped filter and probe in two modes, with a crash in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from browser import browse, measure
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.report.data import Figures, ReportData, collect
from fraud_filter.report.prometheus import Prometheus
from lab.harness.broker import Broker
from lab.harness.processes import Child, free_ports
from prometheus_server import PrometheusServer, require_program
from running import Stage, create_topic, payment, wait_until

FLAGGED = 'fraud_filter_flagged_records_total{mode="%s"}'
#: Payments of each mode: flagged, passed, and those that can't be read.
SENT = (120, 80, 5)


@dataclass(frozen=True)
class Recorded:
    """What was recorded: its Prometheus, the data of the whole run, and what the probe said by mode at its end."""

    server: PrometheusServer
    data: ReportData
    probed: dict[str, dict[str, Any]]

    def figures(self, mode: str) -> Figures:
        (found,) = [row for row in self.data.modes if row.mode == mode]
        return found


class Recording:
    """Runs filter and probe on fixed ports, so that Prometheus finds each new process at the same place."""

    def __init__(self, stage: Stage, server: PrometheusServer, ports: dict[str, str]) -> None:
        self._stage = stage
        self._server = server
        self._ports = ports
        self.probed: dict[str, dict[str, Any]] = {}

    def program(self, mode: str, verb: str, *words: str) -> Child:
        argv = [sys.executable, "-m", "fraud_filter", verb, *words]
        log = self._stage.directory / f"{verb}-{mode}.log"
        return Child(verb, argv, log=log, env={**self._stage.environment(mode=mode), **self._ports})

    def record(self, mode: str, *, crash: bool = False) -> None:
        """Decides payments in a mode, each in a scrape of its own; with `crash` the filter is killed and comes back."""
        file = self._stage.directory / f"probe-{mode}.json"
        with self.program(mode, "probe", "--json", str(file)) as probe:
            self._wait(FLAGGED % mode, 0, probe)
            with self.program(mode, "run") as running:
                self._wait(f'fraud_filter_up{{mode="{mode}"}}', 1, running)
                self._send(mode)
                self._wait(FLAGGED % mode, SENT[0], running)
                if crash:
                    assert running.pid is not None
                    os.killpg(running.pid, signal.SIGKILL)
                    self._wait('up{job="fraud-filter"}', 0, probe)
                else:  # commits are looked for each second
                    self._wait(f'count(fraud_filter_consumer_lag_records{{mode="{mode}"}})', 2, running)
            if crash:
                with self.program(mode, "run") as again:
                    self._wait(FLAGGED % mode, 2 * SENT[0], again)
                    time.sleep(2.5)  # the last counts are scraped
            else:
                time.sleep(2.5)
            assert probe.stop() == 0
        self.probed[mode] = json.loads(file.read_text())

    def _wait(self, query: str, value: float, child: Child) -> None:
        wait_until(lambda: self._server.value(query) == value, f"{query} is {value:g}", child)

    def _send(self, mode: str) -> None:
        flagged, passed, malformed = SENT
        records: list[tuple[str, bytes | None]] = [(f"f{n}", payment(f"{mode}-f{n}", 6000)) for n in range(flagged)]
        records += [(f"p{n}", payment(f"{mode}-p{n}", 6)) for n in range(passed)]
        records += [(f"b{n}", b"no json") for n in range(malformed)]
        for first in range(4):
            self._stage.send(records[first::4])
            time.sleep(0.5)


@pytest.fixture(scope="session")
def prometheus_program() -> str:
    """Looked for first, so that nothing is started in vain."""
    return require_program("FRAUD_TEST_PROMETHEUS", "prometheus")


@pytest.fixture(scope="module")
def recorded(
    prometheus_program: str, broker: Broker, admin: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Recorded]:
    """Micro-batches, then real-time mode on the same checkpoint, killed and started again."""
    directory = tmp_path_factory.mktemp("report")
    create = partial(create_topic, admin)
    stage = Stage(
        broker.address, create("payments"), create("flagged"), create("rejected", partitions=1), directory=directory
    )
    filter_port, probe_port = free_ports(2)
    ports = {"FRAUD_METRICS_PORT": str(filter_port), "FRAUD_PROBE_PORT": str(probe_port)}
    jobs = {"fraud-filter": filter_port, "probe": probe_port}
    with PrometheusServer(prometheus_program, directory / "prometheus", jobs) as server:
        recording = Recording(stage, server, ports)
        began = time.time()
        recording.record("micro-batch")
        recording.record("real-time", crash=True)
        data = collect(Prometheus(server.address), time.time() - began)
        yield Recorded(server, data, recording.probed)
    admin.delete_topics([stage.input, stage.flagged, stage.rejected])


@pytest.mark.parametrize(("mode", "decided"), [("micro-batch", 1), ("real-time", 2)])
def test_counts_are_those_of_the_probe(recorded: Recorded, mode: str, decided: int) -> None:
    figures, probed = recorded.figures(mode), recorded.probed[mode]
    assert (figures.flagged, figures.rejected) == (probed["flagged"], probed["rejected"])
    assert (figures.flagged, figures.rejected) == (SENT[0] * decided, SENT[2] * decided)
    assert figures.duplicates == probed["duplicates"] == (SENT[0] + SENT[2]) * (decided - 1)
    assert figures.restarts == 0
    assert sum(recorded.data.distributions[mode].values()) == probed["count"] == SENT[0] + SENT[2]


@pytest.mark.parametrize("mode", ["micro-batch", "real-time"])
def test_latencies_are_those_of_the_probe_as_closely_as_buckets_tell(recorded: Recorded, mode: str) -> None:
    figures, probed = recorded.figures(mode), recorded.probed[mode]
    limits = [0.0, *(limit * 1000 for limit in recorded.data.distributions[mode])]
    for told, exact in ((figures.p50_ms, probed["p50_ms"]), (figures.p99_ms, probed["p99_ms"])):
        assert told is not None
        near = next(index for index, limit in enumerate(limits) if limit >= exact)
        # PromQL ranks a little differently, so the neighbouring buckets are right as well.
        assert limits[max(0, near - 2)] <= told <= limits[min(near + 1, len(limits) - 1)]
    counted: dict[float, int] = {}
    for latency, count in probed["distribution"].items():
        limit = next(limit for limit in recorded.data.distributions[mode] if int(latency) <= limit * 1000)
        counted[limit] = counted.get(limit, 0) + count
    assert counted == {limit: count for limit, count in recorded.data.distributions[mode].items() if count}


@pytest.mark.parametrize(("mode", "objective_ms"), [("micro-batch", 1000), ("real-time", 20)])
def test_each_mode_is_held_to_its_own_objective(recorded: Recorded, mode: str, objective_ms: int) -> None:
    figures, probed = recorded.figures(mode), recorded.probed[mode]
    assert figures.objective_ms == pytest.approx(objective_ms)
    within = sum(count for latency, count in probed["distribution"].items() if int(latency) <= objective_ms)
    assert figures.within == pytest.approx(within / probed["count"])


def test_what_happened_is_told(recorded: Recorded) -> None:
    kinds = [event.kind for event in recorded.data.events]
    texts = [event.text for event in recorded.data.events]
    assert kinds.count("switched") == 1
    assert "mode switched from micro-batch to real-time" in texts
    after = kinds[kinds.index("switched") + 1 :]
    assert after[0] == "active"
    away = next(number for number, kind in enumerate(after) if kind in ("gap", "inactive"))
    assert "active" in after[away:], texts
    assert recorded.data.spans[0].mode == "micro-batch"


def test_every_curve_has_data(recorded: Recorded) -> None:
    data = recorded.data
    assert data.latency_s.keys() == {"p50", "p95", "p99"}
    assert data.rates.keys() == {"input", "flagged", "rejected"}
    assert data.lags.keys() == {"0", "1"}
    assert data.phases_s.keys() >= {"triggerExecution", "addBatch", "queryPlanning"}
    assert data.since_progress_s is not None
    assert all(age >= 0 for _, age in data.since_progress_s.points)
    assert data.window.scrape_s == pytest.approx(1, abs=0.2)
    assert max(rate for _, rate in data.rates["input"].points) > 10


def test_phases_are_of_micro_batches_only(recorded: Recorded) -> None:
    switched = next(event.at for event in recorded.data.events if event.kind == "switched")
    ends = [series.points[-1][0] for series in recorded.data.phases_s.values()]
    assert max(ends) < switched + recorded.data.window.rate_s + 1


@pytest.mark.parametrize("hours", [1, 24, 24 * 7])
def test_a_longer_window_shows_the_same_counts(recorded: Recorded, hours: int) -> None:
    step_s = hours * 15
    for second in (0, step_s // 3, step_s // 2):  # wherever the steps lie
        longer = collect(Prometheus(recorded.server.address), hours * 3600, end=recorded.data.window.end + second)
        assert longer.window.step_s == step_s
        found = {row.mode: row for row in longer.modes}
        assert found.keys() == {"micro-batch", "real-time"}
        for mode, row in found.items():
            whole = recorded.figures(mode)
            assert (row.flagged, row.rejected, row.duplicates) == (whole.flagged, whole.rejected, whole.duplicates)
            assert row.within == whole.within
            assert row.seconds == pytest.approx(whole.seconds, abs=5)
            assert sum(longer.distributions[mode].values()) == sum(recorded.data.distributions[mode].values())


def _call(*words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "fraud_filter", "report", *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture(scope="module")
def page(recorded: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page as the command writes it."""
    file = tmp_path_factory.mktemp("page") / "report.html"
    ran = _call("--since", "10m", "--prometheus", recorded.server.address, "--output", str(file))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == f"{file}: the last 10m from {recorded.server.address}\n"
    return file


def test_the_command_writes_the_page(page: Path) -> None:
    text = page.read_text()
    assert text.count("<svg") == 6
    assert "mode switched from micro-batch to real-time" in text


def test_a_query_without_data_is_named_with_those_that_have(recorded: Recorded, tmp_path: Path) -> None:
    ran = _call("--prometheus", recorded.server.address, "--query", "nosuch", "--output", str(tmp_path / "page.html"))
    assert ran.returncode == 2
    assert "argument --query: there is no data of 'nosuch' in the last 10m: there is of fraud-filter" in ran.stderr


def test_no_data_in_the_window_is_exit_code_1(recorded: Recorded, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    deadline = time.monotonic() + 30
    while (
        ran := _call("--prometheus", recorded.server.address, "--since", "1s", "--output", str(file))
    ).returncode != 1:
        assert time.monotonic() < deadline, ran.stdout
    assert f"Prometheus at {recorded.server.address} has no data of the filter in the last 1s" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert not file.exists()


def test_what_prometheus_refuses_is_told(recorded: Recorded) -> None:
    with pytest.raises(FraudFilterError, match=r"refused up\{: bad_data: ") as refused:
        Prometheus(recorded.server.address).instant("up{")
    assert not isinstance(refused.value, UsageError)


def test_a_browser_shows_every_plot_without_a_complaint(page: Path, tmp_path: Path) -> None:
    told = measure(page, tmp_path)
    assert len(told["plots"]) == 6
    assert all(width > 800 and height > 200 for width, height in told["plots"]), told
    assert min(told["curves"]) > 5
    assert (told["outside"], told["loaded"], told["wide"]) == ([], [], False)


def test_the_page_itself_has_no_console_message(page: Path, tmp_path: Path) -> None:
    shown = browse(page, tmp_path / "profile", f"--screenshot={tmp_path / 'page.png'}")
    assert [line for line in shown.stderr.splitlines() if "CONSOLE" in line] == []
    assert (tmp_path / "page.png").stat().st_size > 50_000
