"""The audit's range of offsets, and its arguments."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from fraud_filter.audit.run import _range
from fraud_filter.cli.audit import command
from fraud_filter.config import load
from fraud_filter.errors import UsageError

BOUNDS = {0: (5, 20), 1: (0, 0)}


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ({}, {}, ({0: 5, 1: 0}, {0: 20, 1: 0})),
        ({0: 7}, {0: 9}, ({0: 7, 1: 0}, {0: 9, 1: 0})),
        ({0: 1}, {}, ({0: 5, 1: 0}, {0: 20, 1: 0})),
        ({0: 1}, {0: 3}, ({0: 3, 1: 0}, {0: 3, 1: 0})),
        ({}, {0: 3}, ({0: 3, 1: 0}, {0: 3, 1: 0})),
        ({0: 20}, {}, ({0: 20, 1: 0}, {0: 20, 1: 0})),
    ],
)
def test_the_range_is_what_is_retained_of_what_is_wanted(
    start: dict[int, int], end: dict[int, int], expected: tuple[dict[int, int], dict[int, int]]
) -> None:
    assert _range(load(), BOUNDS, start, end) == expected


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        ({2: 0}, {}, "has no partition 2; it has 0, 1"),
        ({}, {0: 21}, "partition 0: offsets 5 to 21 can't be audited"),
        ({0: 9}, {0: 8}, "partition 0: offsets 9 to 8 can't be audited"),
        ({0: 21}, {}, "where the topic ends"),
    ],
)
def test_a_range_outside_the_topic_is_a_usage_error(start: dict[int, int], end: dict[int, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        _range(load(), BOUNDS, start, end)


@pytest.mark.parametrize("text", ["x", "[1]", "3", '{"a": 1}', '{"0": -1}', '{"0": "5"}', '{"0": 1.5}', '{"0": true}'])
@pytest.mark.parametrize("argument", ["--from", "--to"])
def test_offsets_that_are_none_are_a_usage_error(argument: str, text: str) -> None:
    result = CliRunner().invoke(command, [argument, text])
    assert isinstance(result.exception, UsageError)
    assert f"argument {argument}: {text!r} is not accepted" in str(result.exception)


def test_labels_are_for_rules() -> None:
    result = CliRunner().invoke(command, ["--query", "own.py:transform", "--labels"])
    assert isinstance(result.exception, UsageError)
    assert "argument --labels: it tells what rules find, and a query of yours has none" in str(result.exception)
