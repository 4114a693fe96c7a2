"""Colour and marker of each mode and of what modes are compared with, the same in terminal, plots and pages."""

from __future__ import annotations

from collections.abc import Mapping

from fraud_filter.modes import MODES

#: Okabe and Ito's palette, and never colour alone (curves and rows carry the mode's name), so that a
#: print in grey or a colour-blind eye can tell the modes apart.
COLOURS: Mapping[str, str] = {
    **{mode.name: mode.colour for mode in MODES.values()},
    "continuous-single": "#3a93c8",
    "floor": "#5f6b76",
    "flink": "#7b5ea7",
    "velocity": "#8a6d1b",
    "flink-velocity": "#b0529c",
    "model": "#4a6fb5",
}

#: Marker shapes by matplotlib's names.
MARKERS: Mapping[str, str] = {
    **{mode.name: mode.marker for mode in MODES.values()},
    "continuous-single": "<",
    "floor": "v",
    "flink": "P",
    "velocity": "d",
    "flink-velocity": "X",
    "model": "p",
}

#: Curves that are no modes (percentiles, partitions, phases): another eight colours, in order.
SERIES = ("#2f5d9b", "#c2571a", "#2b8a5b", "#8b4fb3", "#b23a48", "#6b7a2a", "#17818f", "#7a5b3e")
