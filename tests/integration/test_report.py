"""The report of the running stack, from its own Prometheus."""

from __future__ import annotations

import re
from pathlib import Path

from deployed import Deployed
from waiting import wait_until


def test_the_report_shows_the_running_stack(stack: Deployed, tmp_path: Path) -> None:
    page = tmp_path / "report.html"

    def written() -> str:
        ran = stack.call("report", "--since", "5m", "--output", str(page))
        assert ran.returncode == 0, ran.stdout
        assert ran.stdout == f"{page}: the last 5m from http://127.0.0.1:{stack.open().value('PROMETHEUS_PORT')}\n"
        text = page.read_text()
        assert "half of the decisions stood on the output topics within" in text
        return text

    html = wait_until("a report with latencies", written, timeout_s=120, every_s=5)
    # One for latency, distribution, rates, lag and progress; phases where a micro-batch ran.
    assert html.count("<svg") >= 4
    mode = stack.json("PROMETHEUS_PORT", "/api/v1/query?query=fraud_filter_up")["data"]["result"][0]["metric"]["mode"]
    row = re.search(rf'<td class="mode"><span[^>]*></span>{mode}</td>(.*?)</tr>', html, re.DOTALL)
    assert row is not None
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", row[1])
    p50_ms, payments_per_second, flagged = (float(cells[at].replace(",", "")) for at in (1, 5, 7))
    assert p50_ms > 0
    assert payments_per_second > 0
    assert flagged > 0


def test_status_says_where_to_get_it(stack: Deployed) -> None:
    assert "make report writes report.html" in stack.call("status").stdout


def test_a_query_that_never_ran_is_refused_with_the_names_of_those_that_did(stack: Deployed, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    refused = stack.call("report", "--query", "nosuch", "--output", str(page))
    assert refused.returncode == 2, refused.stdout
    assert "argument --query: there is no data of 'nosuch' in the last 10m: there is of fraud-filter" in refused.stdout
    assert not page.exists()
