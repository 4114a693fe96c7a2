"""`fraud-filter audit`: expected against written. Exit code 1 when something is lost or unexpected."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import OUTPUT_SETTINGS, Settings, default_env_file, refused
from fraud_filter.errors import EXIT_FAILED, EXIT_OK, UsageError

if TYPE_CHECKING:
    from fraud_filter.audit.gaps import Recorded


@click.command()
@click.option("--from", "start", metavar="OFFSETS", help='first offset by partition, as JSON: {"0": 120, "1": 98}')
@click.option("--to", "end", metavar="OFFSETS", help="offset after the last one by partition, as JSON")
@click.option(
    "--settle",
    "settle_s",
    type=click.FloatRange(min=0),
    default=2.0,
    show_default=True,
    help="seconds that a running filter gets for the newest records before the output is read",
)
@click.option("--allow-gap", is_flag=True, help="accept an empty range, and a --from before what is retained")
@click.option("--labels", is_flag=True, help="also tell what the rules find of labelled fraud (header `label`)")
@click.option("--examples", type=click.IntRange(min=0), default=10, show_default=True, help="findings shown of a kind")
@click.option("--json", "as_json", is_flag=True, help="print JSON instead of tables")
@click.option("--stack", "of_stack", is_flag=True, help="the filter is that of the Compose stack: reads its checkpoint")
@settings_options(
    *(
        "kafka_bootstrap_servers",
        "kafka_timeout_s",
        "kafka_isolation_level",
        "checkpoint",
        "spark_conf",
        "input_topic",
        *OUTPUT_SETTINGS,
        "rules",
        "payment_schema",
        "record_format",
        "time_unit",
        "mode",
        "features_unsupported",
        "velocity_payments",
    ),
)
def command(
    settings: Settings,
    start: str | None,
    end: str | None,
    settle_s: float,
    allow_gap: bool,
    labels: bool,
    examples: int,
    as_json: bool,
    of_stack: bool,
) -> int:
    """Compare what was written with what should have been, for every record that is retained.

    Offsets of partitions that are not named are the first retained one and the current end. Exit codes: 0 nothing
    lost, nothing unexpected, 1 otherwise, 2 bad input. Duplicates are counted and are no fault. An empty range, or one
    that begins before what is retained, proves nothing and is a fault without --allow-gap. Where the filter's
    checkpoint is in reach, records that Kafka removed before they were decided are one in any case.

    The rows of a query of yours are compared by the place of their record, and by its `expect` if it has one.

    A record that can't be judged is a fault, too. What is to be compared waits on disk, where TMPDIR says: some 120
    bytes a record where half of them are flagged.
    """
    from fraud_filter.audit.gaps import read_recorded
    from fraud_filter.audit.result import print_audit
    from fraud_filter.audit.run import audit

    if settings.query and labels:
        raise UsageError("argument --labels: it tells what rules find, and a query of yours has none; leave it out")
    first, last = _offsets("--from", start), _offsets("--to", end)
    recorded = _recorded_by_stack(settings) if of_stack else read_recorded(settings)
    if settings.query:
        _require_places(settings)
    result = audit(
        settings, start=first, end=last, settle_s=settle_s, examples=examples, recorded=recorded, labels=labels
    )
    if as_json:
        click.echo(json.dumps(result.to_dict(), indent=2))
    else:
        print_audit(result, settings)
    if recorded is None:
        click.echo(
            f"{settings.checkpoint!r} is no checkpoint of a filter of this topic: what Kafka removed before it was "
            "decided is not known here (--checkpoint)",
            err=as_json,
        )
    return EXIT_OK if result.ok and (result.complete or allow_gap) else EXIT_FAILED


def _require_places(settings: Settings) -> None:
    from fraud_filter.query.verdicts import find_verdicts

    _, unknown = find_verdicts(settings)
    if unknown:
        remedy = "the audit takes queries that give at most one row for a record"
        raise refused("query", settings.query, f"can't be audited, as {unknown}", remedy)


def _recorded_by_stack(settings: Settings) -> Recorded | None:
    from fraud_filter.audit.gaps import read_recorded
    from fraud_filter.compose.checkpoint_copy import recorded_by
    from fraud_filter.compose.stack import Stack

    if settings.checkpoint_directory is None:  # it is in reach
        return read_recorded(settings)
    return recorded_by(Stack.open(default_env_file().resolve()), settings)


def _offsets(argument: str, text: str | None) -> dict[int, int]:
    try:
        given = json.loads(text) if text is not None else {}
        offsets = {int(partition): offset for partition, offset in given.items()}
        if not all(type(offset) is int and offset >= 0 for offset in offsets.values()):
            raise ValueError
    except (ValueError, AttributeError):
        raise UsageError(
            f'argument {argument}: {text!r} is not accepted: give offsets by partition as JSON, such as {{"0": 120}}'
        ) from None
    return offsets
