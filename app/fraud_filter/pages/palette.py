"""The colour and the marker of each mode, the same in the terminal, in the plots and on the page."""

from __future__ import annotations

from collections.abc import Mapping

#: Okabe and Ito's palette, and never colour alone (curves and rows carry the mode's name), so that a
#: print in grey or a colour-blind eye can tell the modes apart.
COLOURS: Mapping[str, str] = {
    "micro-batch": "#d55e00",
    "async-progress": "#b8548f",
    "continuous": "#0072b2",
    "real-time": "#009e73",
}

#: Marker shapes by matplotlib's names.
MARKERS: Mapping[str, str] = {
    "micro-batch": "s",
    "async-progress": "D",
    "continuous": "^",
    "real-time": "o",
}

#: Curves that are no modes (percentiles, partitions, phases): another eight colours, in order.
SERIES = ("#2f5d9b", "#c2571a", "#2b8a5b", "#8b4fb3", "#b23a48", "#6b7a2a", "#17818f", "#7a5b3e")
