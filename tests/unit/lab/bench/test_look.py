"""Colours of plots and of the style sheet are the same, and dark pages have their own."""

from __future__ import annotations

import re

import pytest
from matplotlib.figure import Figure

from fraud_filter.home import HOME
from lab.bench.look import COLOURS, EDGE, FAINT, INK, MARKERS, OBJECTIVE_INK, SERIES, format_latency, looks, svg

CSS = (HOME / "app/lab/bench/page.css").read_text()


def _variables(css: str) -> dict[str, str]:
    return dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]+);", css))


def _luminance(colour: str) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    shares = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


LIGHT = _variables(CSS[: CSS.index("@media")])
DARK = _variables(CSS[CSS.index("@media") : CSS.index("* {")])


def test_light_pages_have_the_colours_of_the_plots() -> None:
    series = {f"series-{number}": colour for number, colour in enumerate(SERIES, 1)}
    expected = {**COLOURS, **series, "ink": INK, "line": FAINT, "edge": EDGE, "objective": OBJECTIVE_INK}
    assert {name: LIGHT[name] for name in expected} == expected


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_curves_stand_out_from_the_page(theme: dict[str, str]) -> None:
    assert theme.keys() == LIGHT.keys()
    for name in ("ink", "soft", "good", "bad", "objective"):
        assert _contrast(theme[name], theme["paper"]) >= 4.5, name  # WCAG 2, 1.4.3: text
    for name in [name for name in theme if name in COLOURS or name.startswith("series-")]:
        assert _contrast(theme[name], theme["paper"]) >= 3, name  # WCAG 2, 1.4.11: graphics


def test_a_plot_takes_its_colours_from_the_page() -> None:
    figure = Figure()
    figure.add_subplot().plot([1, 2], color=COLOURS["continuous"])
    text = svg(figure)
    assert text.startswith("<svg")
    assert f"stroke: var(--continuous, {COLOURS['continuous']})" in text
    assert not re.search(rf": {COLOURS['continuous']}", text)


def test_latencies_on_an_axis_have_a_unit() -> None:
    assert [format_latency(ms) for ms in (0.5, 20, 1000, 2500)] == ["0.5 ms", "20 ms", "1 s", "2.5 s"]


def test_a_contender_with_another_setting_has_a_look_of_its_own() -> None:
    found = looks(["real-time", "real-time:linger_ms=5", "real-time:linger_ms=9"])
    assert found["real-time"] == ("real-time", COLOURS["real-time"], MARKERS["real-time"])
    assert [one.variable for one in found.values()] == ["real-time", "series-1", "series-2"]
    assert len({one.colour for one in found.values()}) == 3
