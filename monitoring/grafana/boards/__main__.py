"""Writes the dashboards as Grafana reads them: `python monitoring/grafana/boards FOLDER`, or `make generated`."""

from __future__ import annotations

import sys
from pathlib import Path

import engine_board
import filter_board
import infrastructure_board
from grafana_foundation_sdk.cog.encoder import JSONEncoder


def write(folder: Path) -> None:
    """One file a dashboard, named by its identity."""
    for board in (filter_board.BOARD, engine_board.BOARD, infrastructure_board.BOARD):
        made = board.build()
        rows_and_panels = (one for panel in made.panels or [] for one in (panel, *getattr(panel, "panels", [])))
        for number, panel in enumerate(rows_and_panels, start=1):
            panel.id_val = number
        text = JSONEncoder(sort_keys=True, indent=2).encode(made)
        (folder / f"{made.uid}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
