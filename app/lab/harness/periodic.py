"""A look at something, again and again, beside what the program does."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Self


class Periodic(ABC):
    """Looks every `every_s` seconds in a thread of its own, from entering to leaving; first after `every_s`."""

    def __init__(self, name: str, every_s: float) -> None:
        self._every_s = every_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    @abstractmethod
    def look(self) -> None:
        """Called in the thread; what it raises ends the looking."""

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s):
            self.look()
