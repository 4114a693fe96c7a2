"""What a user's settings of Spark can't change: it is refused before Java starts."""

from __future__ import annotations

import pytest

from fraud_filter.config import load
from fraud_filter.errors import UsageError
from fraud_filter.spark import session


@pytest.mark.parametrize(
    "master",
    ["foo", "local[", "local[0]", "local[x]", "spark://", "spark://host", "spark://host:port", "http://host:7077",
     "spark:/host:7077", "spark://a:1,b", "mesos://host:5050", "k8s://", "local[2] "],
)  # fmt: skip
def test_what_is_no_address_of_a_master_is_refused_as_such(master: str) -> None:
    with pytest.raises(UsageError, match=r"setting spark_master .* is no address of a Spark master; give local"):
        session.launch(load({"spark_master": master}))


@pytest.mark.parametrize("host", ["127.0.0.1:1", "no-such-host.invalid:7077", "127.0.0.1:1,[::1]:1"])
def test_a_master_that_does_not_answer_is_named_with_the_reason(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_MASTER_ANSWERS_S", 0.0)
    with pytest.raises(UsageError, match=r"setting spark_master .* does not answer: .*: \w+") as told:
        session.launch(load({"spark_master": f"spark://{host}"}))
    assert all(one in str(told.value) for one in host.split(","))
