"""Colour and marker of each mode and of what modes are compared with, the same in terminal, plots and pages."""

from __future__ import annotations

from collections.abc import Mapping

#: Okabe and Ito's palette, and never colour alone (curves and rows carry the mode's name), so that a
#: print in grey or a colour-blind eye can tell the modes apart.
COLOURS: Mapping[str, str] = {
    "micro-batch": "#d55e00",
    "async-progress": "#b8548f",
    "continuous": "#0072b2",
    "continuous-single": "#3a93c8",
    "real-time": "#009e73",
    "floor": "#5f6b76",
    "flink": "#7b5ea7",
}

#: Marker shapes by matplotlib's names.
MARKERS: Mapping[str, str] = {
    "micro-batch": "s",
    "async-progress": "D",
    "continuous": "^",
    "continuous-single": "<",
    "real-time": "o",
    "floor": "v",
    "flink": "P",
}

#: Curves that are no modes (percentiles, partitions, phases): another eight colours, in order.
SERIES = ("#2f5d9b", "#c2571a", "#2b8a5b", "#8b4fb3", "#b23a48", "#6b7a2a", "#17818f", "#7a5b3e")
