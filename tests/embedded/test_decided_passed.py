"""A filter that has decided all and committed nothing is killed: the next one begins where it ended."""

from __future__ import annotations

from typing import Any

import pytest

from faults import events, kill_all
from fraud_filter.audit.run import audit
from running import START_S, Stage, payment, read_topics, wait_until

#: More than the query would drop by itself.
COUNT = 1500


@pytest.mark.timeout(600)
def test_a_start_in_any_mode_goes_on_behind_what_is_decided(stage: Stage, topics: Any) -> None:
    approved = topics("approved")
    settings = stage.settings().model_copy(update={"emit": "all", "approved_topic": approved})
    outputs = (stage.flagged, stage.rejected, approved)
    own = {"emit": "all", "approved_topic": approved, "continuous_interval": "5 minutes"}
    for start, mode in enumerate(("real-time", "continuous", "real-time", "async-progress")):
        sent = (start + 1) * COUNT
        with stage.run(mode=mode, **own) as program:
            stage.send((f"c{n}", payment(f"p{n}", 6000 if n % 2 else 6)) for n in range(sent - COUNT, sent))

            def are_decided(count: int = sent) -> bool:
                return sum(map(len, read_topics(stage.address, *outputs).values())) >= count

            wait_until(are_decided, "all is decided", program, START_S)
            kill_all(program)
            passed = [line.rpartition("payments=")[2] for line in events(program, "decided_passed")]
            assert passed == [str(COUNT)] * bool(start), program.tail()
    found = audit(settings)
    assert (found.expected, found.lost, found.duplicated, found.unexpected) == (sent // 2, 0, 0, 0), found
