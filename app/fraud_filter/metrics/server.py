"""The /metrics endpoint of a program, and the client that asks such pages."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterable, Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics, start_http_server

from fraud_filter.errors import UsageError

Registry = CollectorRegistry
#: Whether all is right, and what the page says.
Page = Callable[[], tuple[bool, Mapping[str, Any]]]
#: A page is read up to here: any program may answer.
_MOST_BYTES = 16 * 2**20


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


def get_page(host: str, port: int, path: str, timeout_s: float) -> tuple[int, str]:
    """Status and body of the answer to a GET, whatever HTTP_PROXY says: no proxy knows what listens here.

    Raises:
        OSError: there is none within `timeout_s` seconds, or it is no HTTP.
    """
    try:
        connection = HTTPConnection(host, port, timeout=timeout_s)
    except HTTPException as error:
        raise OSError(f"no host has this name: {error}") from None
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read(_MOST_BYTES).decode("utf-8", "replace")
    except HTTPException as error:
        raise OSError(f"no HTTP: {type(error).__name__}") from None
    except UnicodeError as error:  # of a name that no DNS can hold
        raise OSError(f"no host has this name: {error}") from None
    finally:
        connection.close()
