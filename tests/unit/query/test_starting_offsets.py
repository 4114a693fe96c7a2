"""Where a query without a checkpoint begins: words, offsets of all partitions, and what is refused."""

from __future__ import annotations

import json

import pytest

from fraud_filter.config import load
from fraud_filter.errors import UsageError
from fraud_filter.query.preflight import complete, require_there


@pytest.mark.parametrize("word", ["earliest", "latest"])
def test_a_word_is_taken_as_it_is(word: str) -> None:
    assert complete(load({"starting_offsets": word}), 2).starting_offsets == word


def test_partitions_that_are_not_named_begin_at_the_earliest() -> None:
    settings = load({"starting_offsets": '{"payments": {"1": 5}}'})
    assert json.loads(complete(settings, 3).starting_offsets) == {"payments": {"0": -2, "1": 5, "2": -2}}


def test_another_source_has_no_partitions_to_begin_at() -> None:
    settings = load({"starting_offsets": '{"payments": {"7": 5}}', "source": "rate"})
    assert complete(settings, 0) == settings


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"payments": {"2": 5}}', "partitions that 'payments' has not: 2; it has 0 to 1"),
        ('{"payments": {"-1": 5}}', "has not: -1"),
        ('{"other": {"0": 1}}', "is not accepted; give earliest, latest, or JSON such as"),
        ('{"payments": {"0": 1, "1": 1}, "other": {"0": 1}}', "is not accepted"),
        ('{"payments": {"0": -3}}', "is not accepted"),
        ('{"payments": {"0": "1"}}', "is not accepted"),
        ('{"payments": [1, 2]}', "is not accepted"),
        ("[]", "is not accepted"),
        ("{}", "is not accepted"),
        ("yesterday", "is not accepted"),
    ],
)
def test_what_names_no_offsets_of_the_topic_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=r"setting starting_offsets \(--starting-offsets") as refused:
        complete(load({"starting_offsets": text}), 2)
    assert reason in str(refused.value)


def test_offsets_that_the_topic_does_not_have_are_refused() -> None:
    settings = load({"starting_offsets": '{"payments": {"0": 9, "1": 2}}'})
    bounds = {0: (0, 8), 1: (3, 5)}
    require_there(settings, {0: 8, 1: 3}, bounds)
    with pytest.raises(
        UsageError, match=r"partition 0 has offsets 0 to 8, not 9; partition 1 has offsets 3 to 5, not 2"
    ):
        require_there(settings, {0: 9, 1: 2}, bounds)


def test_a_word_is_always_there() -> None:
    """The topic's end was read after its bounds, and payments came in between."""
    require_there(load({"starting_offsets": "latest"}), {0: 9, 1: 6}, {0: (0, 8), 1: (3, 5)})
