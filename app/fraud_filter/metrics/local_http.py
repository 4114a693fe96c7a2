"""Pages of programs on this machine or in this network of containers: asked for without any proxy."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException

#: Who answers may be any program: more than this is no page of ours.
_MOST_BYTES = 16 * 2**20


def get(host: str, port: int, path: str, timeout_s: float) -> tuple[int, str]:
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
