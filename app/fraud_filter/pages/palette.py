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
