"""What records say reaches a terminal as text, and acts on nothing."""

from __future__ import annotations

import io
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.table import Table

from fraud_filter.cli.run import command as run_command
from fraud_filter.home import HOME
from fraud_filter.text.console import PrintableConsole
from fraud_filter.text.logs import formatter
from fraud_filter.text.terminal import printable, printable_lines

#: Sets a terminal's title, clears it (ESC, and C1's own letter for it), turns the writing, forges a line.
HOSTILE = "p\x1b]0;owned\x07\x9b2J\u202egnp\u2066\x7f\r\nnothing lost"
ACTING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")


def test_what_acts_is_escaped_and_the_rest_stays() -> None:
    assert printable(HOSTILE) == r"p\x1b]0;owned\x07\x9b2J\u202egnp\u2066\x7f\r\nnothing lost"
    for plain in ("Müller & Söhne", "支付", "payment-1", "💶", ""):
        assert printable(plain) == plain
    assert printable("\ud800") == r"\ud800"
    assert printable_lines("one\ntwo\tthree\r") == "one\ntwo\tthree\\r"


@settings(deadline=None)
@given(st.text(alphabet=st.characters()))
def test_fuzzed_text_can_be_shown_anywhere(text: str) -> None:
    shown = printable(text)
    assert not ACTING.search(shown)
    shown.encode()  # a lone surrogate would fail where it is printed
    assert printable(shown) == shown


def test_a_console_escapes_in_lines_and_in_tables() -> None:
    file = io.StringIO()
    console = PrintableConsole(file=file, width=200)
    table = Table(HOSTILE, title=HOSTILE)
    table.add_row(HOSTILE)
    console.print(HOSTILE, table)
    assert not ACTING.search(file.getvalue())
    assert file.getvalue().count(r"\x1b]0;owned") == 4


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_log_lines_are_text(log_format: str) -> None:
    write = formatter(log_format, "%(message)s").format
    record = logging.LogRecord("x", logging.WARNING, "", 1, "cause=%s", (HOSTILE,), None)
    assert not ACTING.search(write(record))
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        record.exc_info = sys.exc_info()
    assert not ACTING.search(write(record))


def test_the_filter_s_own_log_is_made_so(monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    seen: list[str] = []

    def run(_: object, **_options: object) -> int:
        record = logging.LogRecord("x", logging.WARNING, "", 1, HOSTILE, (), None)
        seen.extend(handler.format(record) for handler in root.handlers)
        return 0

    monkeypatch.setattr("fraud_filter.supervisor.run", run)
    assert CliRunner().invoke(run_command, []).exit_code == 0
    assert len(seen) == 1
    assert not ACTING.search(seen[0])


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("raise FraudFilterError(text)", 1),
        ("raise click.UsageError(text)", 2),
        ("raise ValueError(text)", 1),
        ("logging.warning(text); logging.getLogger('x').warning(text)", 0),
    ],
)
def test_errors_of_any_verb_are_text(code: str, exit_code: int) -> None:
    program = (
        "import click, logging, sys\nfrom fraud_filter.cli import main\nfrom fraud_filter.errors import *\n"
        f"def verb(**_):\n    text = {HOSTILE!r}\n    {code.replace('logging.warning(text); ', '')}\n"
        "main.cli.main = verb\nmain.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, timeout=200,
        env={"PATH": os.environ["PATH"], "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    shown = done.stderr.decode()
    assert done.returncode == exit_code, shown
    assert r"\x1b]0;owned" in shown
    assert not ACTING.search(shown)


def test_tables_are_printed_by_that_console_alone() -> None:
    made = {
        str(path.relative_to(HOME / "app/fraud_filter"))
        for path in Path(HOME / "app/fraud_filter").rglob("*.py")
        if re.search(r"(?<!Printable)\bConsole\(", path.read_text())
    }
    assert made == set()
