"""A web server of a test's own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Quiet(BaseHTTPRequestHandler):
    """Logs nothing."""

    def log_message(self, *_: object) -> None:
        """See BaseHTTPRequestHandler."""


@contextmanager
def serve(handler: Callable[..., Any]) -> Iterator[str]:
    """The address, HOST:PORT, at which the handler answers while the block runs."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
