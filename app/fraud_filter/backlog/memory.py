"""The most memory that a program and all it started have held."""

from __future__ import annotations

from contextlib import suppress

import psutil

from fraud_filter.embedded.processes import Child


class PeakMemory:
    """Looks when it is asked to; memory that comes and goes between two looks is not seen."""

    def __init__(self, child: Child) -> None:
        self._child = child
        #: Resident set of all processes at the look that found the most, in bytes.
        self.peak_bytes = 0

    def look(self) -> None:
        """Adds up what the processes hold now."""
        held = 0
        with suppress(psutil.NoSuchProcess):
            program = psutil.Process(self._child.pid)
            for process in (program, *program.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    held += process.memory_info().rss
        self.peak_bytes = max(self.peak_bytes, held)
