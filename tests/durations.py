"""How long the tests take: `durations.json` orders the files, and the slowest are printed after each run."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

_TESTS = Path(__file__).parent
_RECORD = _TESTS / "durations.json"
#: Seconds from which on a test is recorded and printed.
_LONG_S = 1.0
_PRINTED = 10
#: Taken for a file of which nothing is recorded: it may be new and long, so it does not begin last.
_UNKNOWN_S = 20.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-durations", action="store_true", help="write the seconds of this run's tests there")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Run(config))


def read() -> dict[str, float]:
    """Seconds of each recorded test, by its id."""
    found: dict[str, float] = json.loads(_RECORD.read_text()) if _RECORD.exists() else {}
    return found


def by_file(seconds: Mapping[str, float]) -> dict[str, float]:
    """Seconds of each file's tests together."""
    files: dict[str, float] = defaultdict(float)
    for test, each in seconds.items():
        files[test.partition("::")[0]] += each
    return dict(files)


def in_order(tests: Iterable[str], recorded: Mapping[str, float]) -> dict[str, float]:
    """The rank of each test's file: the longest first, because one that begins last would run alone at the end."""
    known = set(by_file(recorded))
    files: dict[str, float] = defaultdict(float)
    for test in tests:
        files[test.partition("::")[0]] += recorded.get(test, 0)
    return {file: -(each if file in known else _UNKNOWN_S) for file, each in files.items()}


def merged(recorded: Mapping[str, float], ran: Mapping[str, float], root: Path) -> dict[str, float]:
    """What to record after a run: its tests as it measured them, and others that are still in their files."""
    others = {test: each for test, each in recorded.items() if test not in ran and _exists(root, test)}
    new = {test: round(each, 1) for test, each in ran.items() if each >= _LONG_S}
    return dict(sorted((others | new).items()))


def _exists(root: Path, test: str) -> bool:
    file, _, name = test.partition("::")
    path = root / file
    return path.exists() and f"def {name.partition('[')[0]}(" in path.read_text()


class _Run:
    """Adds up what the tests of this run take, fixtures included."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seconds: dict[str, float] = defaultdict(float)
        self._outcomes: dict[str, str] = {}

    @pytest.hookimpl(trylast=True)  # what is deselected takes no time
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if hasattr(self._config, "workerinput"):  # with others side by side
            rank = in_order([item.nodeid for item in items], read())
            items.sort(key=lambda item: rank[item.nodeid.partition("::")[0]])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        if report.when == "call" or report.failed:
            self._outcomes[report.nodeid] = report.outcome

    def pytest_sessionfinish(self) -> None:
        if self._config.getoption("--record-durations") and not hasattr(self._config, "workerinput"):
            measured = merged(read(), self._seconds, self._config.rootpath)
            _RECORD.write_text(json.dumps(measured, indent=0) + "\n")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for title, seconds in (("tests", self._seconds), ("files", by_file(self._seconds))):
            long = sorted(((each, name) for name, each in seconds.items() if each >= _LONG_S), reverse=True)
            if long:
                total = sum(seconds.values())
                terminalreporter.section(f"slowest of {len(seconds)} {title}, {total:.0f} s of work")
            for each, name in long[:_PRINTED]:
                terminalreporter.line(f"{each:7.1f} s  {name}")
        if self._config.getoption("lf", default=False):
            passed = sum(outcome == "passed" for outcome in self._outcomes.values())
            terminalreporter.section(f"retried: {len(self._outcomes)} tests, {passed} of them passed this time")
            for name, outcome in self._outcomes.items():
                terminalreporter.line(f"{outcome:8}  {name}")
