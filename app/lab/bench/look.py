"""Colours and markers of contenders, the look of every plot, and a figure as an `<svg>` element for a page."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from fraud_filter.modes import MODES


class Look(NamedTuple):
    """How a contender is drawn."""

    colour: str
    marker: str


#: Okabe and Ito's palette, and never colour alone (curves and rows carry the mode's name), so that a
#: print in grey or a colour-blind eye can tell the modes apart. Markers by matplotlib's names.
LOOKS: Mapping[str, Look] = {
    **{mode.name: Look(mode.colour, mode.marker) for mode in MODES.values()},
    "streams": Look("#5f6b76", "v"),
    "streams-eos": Look("#9aa3ab", "h"),
    "flink": Look("#7b5ea7", "P"),
    "flink-eos": Look("#b49bd6", "8"),
    "velocity": Look("#8a6d1b", "d"),
    "flink-velocity": Look("#b0529c", "X"),
    "flink-json": Look("#4f3a86", "p"),
    "copy": Look("#3f7f93", "H"),
    "flink-copy": Look("#c08fc9", "1"),
}

#: What is compared besides, such as a mode with another setting: another eight colours and markers, in order.
SERIES = ("#2f5d9b", "#c2571a", "#2b8a5b", "#8b4fb3", "#b23a48", "#6b7a2a", "#17818f", "#7a5b3e")
_SERIES_MARKERS = "osD^v<>*"


def looks(names: Sequence[str]) -> dict[str, Look]:
    """The look of each contender."""
    series = itertools.cycle(map(Look, SERIES, _SERIES_MARKERS))
    return {name: LOOKS.get(name) or next(series) for name in names}


INK, FAINT, EDGE, OBJECTIVE_INK = "#1f2933", "#d9dfe5", "#9aa5b1", "#4a5560"

RC: Any = {
    "font.family": "sans-serif",
    "font.size": 11,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.edgecolor": EDGE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",  # text stays text: small, searchable, and in the page's own font
    "svg.hashsalt": "fraud-filter",  # the same figures give the same file
}


def svg(figure: Figure) -> str:
    """The figure as an element to stand in a page: no prolog, no fixed size, the page's font."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    return re.sub(r"(font: [^;\"]*?px) [^;\"]*", r"\1 system-ui, sans-serif", text)
