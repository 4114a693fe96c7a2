"""`fraud-filter health`: is the running filter healthy? For people and scripts; containers ask /readyz."""

from __future__ import annotations

import json
from typing import Any

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_FAILED, EXIT_OK
from fraud_filter.text.terminal import printable

_TIMEOUT_S = 3.0
#: What only a filter can tell.
_UNKNOWN = dict.fromkeys(("mode", "query", "state", "last_commit_age_s", "lag_records"))


@click.command()
@click.option("--json", "as_json", is_flag=True, help="print JSON")
@settings_options("metrics_host", "metrics_port")
def command(settings: Settings, as_json: bool) -> int:
    """Say whether the filter on this machine is active and keeps up; exit code 0 when it does, else 1."""
    verdict = ask(settings)
    click.echo(json.dumps(verdict, indent=2) if as_json else verdict["line"])
    return EXIT_OK if verdict["healthy"] else EXIT_FAILED


def ask(settings: Settings) -> dict[str, Any]:
    """What the filter at `metrics_host`:`metrics_port` answers at /readyz; `healthy` and `line` where none does."""
    from fraud_filter.metrics.server import get_page

    at = f"http://{settings.metrics_host}:{settings.metrics_port}"
    try:
        _, page = get_page(settings.metrics_host, settings.metrics_port, "/readyz", _TIMEOUT_S)
    except OSError as error:
        return {
            "healthy": False,
            "line": printable(f"no filter answers at {at}: {error.strerror or error}"),
            **_UNKNOWN,
        }
    try:
        verdict: dict[str, Any] = json.loads(page)
        return verdict | {"healthy": bool(verdict["healthy"]), "line": printable(str(verdict["line"]))}
    except (ValueError, TypeError, KeyError, RecursionError):
        line = f"what answers at {at} is no filter: see metrics_port (FRAUD_METRICS_PORT)"
        return {"healthy": False, "line": line, **_UNKNOWN}
