"""Whether something listens at an address that a setting names, and why it can't be reached if not."""

from __future__ import annotations

import socket

_CONNECT_S = 3.0


def unreachable(address: str) -> str | None:
    """Why nobody can be reached at `address` (HOST:PORT), with the address; None where somebody takes connections."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S):
            return None
    except (OSError, ValueError, OverflowError) as error:  # UnicodeError of a host that is no name is a ValueError
        return f"{address}: {getattr(error, 'strerror', None) or error}"
