"""`fraud-filter` called in this process: a Python of its own takes a second to start."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from fraud_filter.cli.main import main


def call(*words: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """What `fraud-filter WORDS` says and ends with, with no more environment than is given.

    Log handlers are set up as in a new process; they, the hook for exceptions and the environment are put back.
    """
    out, err, root = _stream(), _stream(), logging.getLogger()
    own = {name: os.environ[name] for name in ("PATH", "FRAUD_ENV_FILE") if name in os.environ}
    with ExitStack() as changed:
        changed.enter_context(mock.patch.dict(os.environ, {**own, **environment}, clear=True))
        changed.enter_context(mock.patch.object(sys, "argv", ["fraud-filter", *words]))
        changed.enter_context(mock.patch.object(sys, "excepthook", sys.excepthook))
        changed.enter_context(mock.patch.object(root, "handlers", []))
        changed.enter_context(mock.patch.object(root, "level", root.level))
        changed.enter_context(redirect_stdout(out))
        changed.enter_context(redirect_stderr(err))
        if cwd is not None:
            changed.enter_context(chdir(cwd))
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(words, code, _written(out), _written(err))


def _stream() -> io.TextIOWrapper:
    """One that takes bytes too, as a program's own do."""
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _written(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
