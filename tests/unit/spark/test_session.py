"""What a user's settings of Spark can't change: it is refused before Java starts."""

from __future__ import annotations

import json

import pytest

from fraud_filter.config import load
from fraud_filter.errors import UsageError
from fraud_filter.spark import session


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.ansi.enabled", "true"),
        ("spark.sql.session.timeZone", "Europe/Berlin"),
        ("spark.sql.variable.substitute", "true"),
        ("spark.sql.legacy.timeParserPolicy", "EXCEPTION"),
    ],
)
def test_settings_that_change_what_rules_mean_are_refused(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"setting spark_conf .*'{name}={value}' is not accepted"):
        session.launch(load({"spark_conf": json.dumps({name: value})}))
