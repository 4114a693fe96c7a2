"""The probe as a program: signals, lines in the terminal, /metrics, and a file of final figures."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

from fraud_filter.config import Settings
from fraud_filter.metrics.server import MetricsServer, Registry
from fraud_filter.probe.probe import Probe
from fraud_filter.probe.tally import ProbeSnapshot
from fraud_filter.stop_signals import stop_event

#: How soon the end of the reading thread is noticed, in seconds.
_LOOK_S = 1.0


def run_probe(
    settings: Settings,
    *,
    interval_s: float,
    seconds: float | None,
    from_beginning: bool,
    json_file: Path | None,
    say: Callable[[str], None],
) -> None:
    """Runs the probe until SIGTERM, SIGINT, or for `seconds` seconds; `say` prints a line every `interval_s` seconds.

    Raises:
        UsageError: no broker, a missing topic, a port in use.
        FraudFilterError: the output topics could not be read any longer.
    """
    registry = Registry()
    probe = Probe(settings, registry, from_beginning=from_beginning)
    server = MetricsServer(registry, settings.metrics_host, settings.probe_port, "probe_port")
    try:
        with stop_event() as stop, probe:
            say(
                f"event=probe_started mode={settings.mode} metrics=http://{settings.metrics_host}:{server.port}/metrics"
            )
            _report(probe, settings, stop, interval_s, seconds, say)
    finally:
        server.stop()
    final = probe.snapshot()
    say(_line("probe_stopped", settings, final))
    if json_file:
        figures = {"mode": settings.mode, "query": settings.query_name, **final.to_dict()}
        figures["distribution"] = probe.distribution()
        json_file.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def _report(
    probe: Probe,
    settings: Settings,
    stop: threading.Event,
    interval_s: float,
    seconds: float | None,
    say: Callable[[str], None],
) -> None:
    """A line an interval, with the figures of that interval, until it is time to stop."""
    now = time.monotonic()
    end, line_at = now + (seconds if seconds is not None else float("inf")), now + interval_s
    while not stop.wait(max(0.0, min(line_at, end, now + _LOOK_S) - now)) and time.monotonic() < end:
        now = time.monotonic()
        if now >= line_at:
            say(_line("probe", settings, probe.lap(), interval_s))
            line_at += interval_s
        else:
            probe.raise_error()


def _line(event: str, settings: Settings, figures: ProbeSnapshot, interval_s: float | None = None) -> str:
    parts = {"event": event, "mode": settings.mode, "query": settings.query_name}
    if interval_s is not None:
        parts["records_per_second"] = f"{(figures.flagged + figures.rejected) / interval_s:.1f}"
    counts = ("flagged", "rejected", "duplicates", "unreadable", "negative")
    latencies = ("p50_ms", "p90_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms")
    parts |= {name: str(getattr(figures, name)) for name in (*counts, *latencies) if getattr(figures, name) is not None}
    return " ".join(f"{name}={value}" for name, value in parts.items())
