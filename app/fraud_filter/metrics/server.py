"""The /metrics endpoint of a program."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics, start_http_server

from fraud_filter.errors import UsageError

Registry = CollectorRegistry
#: Whether all is right, and what the page says.
Page = Callable[[], tuple[bool, Mapping[str, Any]]]


class MetricsServer:
    """The /metrics endpoint of one registry, served by a thread of its own until `stop`.

    Raises:
        UsageError: the address can't be used.
    """

    def __init__(
        self, registry: Registry, host: str, port: int, setting: str, pages: Mapping[str, Page] | None = None
    ) -> None:
        """`port` 0 takes a free one; `setting` names the setting that gave the port, for the error.

        Args:
            pages: further ones by their path, as JSON, with status 200 where all is right, else 503.
        """
        disable_created_metrics()  # type: ignore[no-untyped-call] # a second series a counter, of use to nobody
        ProcessCollector(registry=registry)  # the process' own CPU, memory and file descriptors
        name = f"setting {setting} (--{setting.replace('_', '-')}): "
        try:
            self._server, self._thread = start_http_server(port, addr=host, registry=registry)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                reason = f"port {port} of {host} is in use: stop what listens there, or choose another (0: a free one)"
            else:
                reason = f"{host}:{port} can't be listened on: {error.strerror or error}"
            raise UsageError(name + reason) from None
        self._server.set_app(_with_pages(pages or {}, self._server.get_app()))
        self.port = int(self._server.server_port)

    def stop(self) -> None:
        """Stops serving and frees the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _with_pages(pages: Mapping[str, Page], metrics: Any) -> Any:
    """The WSGI application that serves `pages`, and the metrics at every other path."""

    def serve(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        page = pages.get(environ["PATH_INFO"])
        if not page:
            answer: Iterable[bytes] = metrics(environ, start_response)
            return answer
        right, said = page()
        status = "200 OK" if right else "503 Service Unavailable"
        start_response(status, [("Content-Type", "application/json"), ("Cache-Control", "no-store")])
        return [json.dumps(said).encode() + b"\n"]

    return serve
