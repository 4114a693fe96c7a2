"""How contenders and latencies look in plots."""

from __future__ import annotations

from lab.bench.look import COLOURS, MARKERS, SERIES, format_latency, looks


def test_latencies_on_an_axis_have_a_unit() -> None:
    assert [format_latency(ms) for ms in (0.5, 20, 1000, 2500)] == ["0.5 ms", "20 ms", "1 s", "2.5 s"]


def test_a_contender_with_another_setting_has_a_look_of_its_own() -> None:
    found = looks(["real-time", "real-time:linger_ms=5", "real-time:linger_ms=9"])
    assert found["real-time"] == (COLOURS["real-time"], MARKERS["real-time"])
    assert [one.colour for one in found.values()] == [COLOURS["real-time"], *SERIES[:2]]
