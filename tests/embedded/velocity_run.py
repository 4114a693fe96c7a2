"""A filter with features of all kinds, fed with payments of shops that sell at different rates."""

from __future__ import annotations

import json
import random
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kafka.producer.kafka import KafkaProducer

from fraud_filter.audit.gaps import read_recorded
from fraud_filter.audit.result import AuditResult, FeatureCounts
from fraud_filter.audit.run import audit
from lab.harness.processes import Child, free_ports
from metrics_page import Page
from running import GOOD, Stage, wait_until

#: Most payments of a key in the state.
HELD = 8
RULES = """\
features:
  - {name: payments_6s, per: merchant, over: 6 seconds, value: count}
  - {name: spent_6s, per: merchant, over: 6 seconds, value: sum(amount)}
  - {name: mean_2s, per: merchant, over: 2 seconds, value: avg(amount)}
  - {name: least_6s, per: merchant, over: 6 seconds, value: min(amount)}
  - {name: most_2s, per: merchant, over: 2 seconds, value: max(amount)}
  - {name: countries_2s, per: merchant, over: 2 seconds, value: count_distinct(country)}
  - {name: idle, per: merchant, over: 6 seconds, value: seconds_since_last}
  - {name: known, per: merchant, over: 6 seconds, value: first_seen}
  - {name: pace, per: merchant, decay: 1 second, value: count}
  - {name: flow, per: merchant, decay: 2 seconds, value: sum(amount)}
rules:
  - {name: each, when: amount > 0}
  - {name: burst, when: payments_6s > 4 AND idle < 1}
  - {name: travel, when: countries_2s >= 2}
"""

LATE_S = (0, 0.4, 0.8, 2, 50, 90, -3600)
#: How often the shops sell, from all the time to about once in a window.
SHOPS = {"busy": 12, "usual": 5, "corner": 5, "quiet": 1}


class Run:
    """A filter with features, and the payments that it gets."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.page = Page(*free_ports(1))
        self.settings = {
            "mode": "real-time",
            "real_time_duration": "20 seconds",
            "velocity_payments": str(HELD),
            "metrics_port": str(self.page.port),
        }
        self.set_rules(RULES)
        self._draw = random.Random(7)
        self._sent = 0

    def set_rules(self, text: str) -> None:
        """Before the start."""
        file = self.stage.directory / "rules.yml"
        file.write_text(text)
        self.settings["rules"] = str(file)

    def start(self, **changes: str) -> Child:
        """The filter."""
        return self.stage.run(**(self.settings | changes)).start()

    def pay(self, seconds: float) -> None:
        """Payments of all kinds for so long, some of which are none."""
        producer = KafkaProducer(bootstrap_servers=self.stage.address, acks="all")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            key, value = self._payment()
            producer.send(self.stage.input, key=key.encode(), value=value)
            self._sent += 1
            time.sleep(self._draw.random() * 0.04)
        producer.close()

    def _payment(self) -> tuple[str, bytes]:
        draw = self._draw
        shop = draw.choices([*SHOPS, None, "on both partitions"], [*SHOPS.values(), 1, 1])[0]
        changes = {"payment_id": f"p{self._sent}", "merchant": shop, "country": draw.choice(["DE", "FR"])}
        changes["created_at"] = (datetime.now(UTC) - timedelta(seconds=draw.choice(LATE_S))).isoformat()
        value = json.dumps({**GOOD, **changes, "amount": round(draw.random() * 100, 2)}).encode()
        if draw.random() < 0.05:
            value = value[:-5]
        return (shop or "none") if shop in SHOPS else str(draw.random()), value

    def pay_uncommitted(self, program: Child) -> None:
        """Payments that are decided in a batch that has not ended."""

        def decided_between_commits() -> bool:
            before = self._commits()
            self.pay(1)
            self.await_all(program)
            return before == self._commits()

        wait_until(decided_between_commits, "a batch that outlasts its payments", program)

    def _commits(self) -> int:
        return len(list(self.stage.directory.glob("checkpoint/commits/[0-9]*")))

    @property
    def decided(self) -> set[tuple[int, int]]:
        """Partition and offset of the payments with a decision."""
        return {place for records in self.stage.written().values() for place in map(_place, records)}

    def await_all(self, program: Child) -> None:
        """Waits until each payment is decided: one of the rules matches every valid one."""
        wait_until(lambda: len(self.decided) == self._sent, "all payments are decided", program, 240)

    def audit(self, *, by_checkpoint: bool = False) -> AuditResult:
        """Audits all payments; with `by_checkpoint` by the rules and places that the checkpoint names."""
        location = str(self.stage.directory / "checkpoint")
        changes = {"rules": Path(self.settings["rules"]), "velocity_payments": HELD, "checkpoint": location}
        settings = self.stage.settings().model_copy(update=changes)
        return audit(settings, recorded=read_recorded(settings) if by_checkpoint else None)


def _place(record: Any) -> tuple[int, int]:
    headers = dict(record.headers)
    return int(headers["source.partition"]), int(headers["source.offset"])


def right(result: AuditResult) -> FeatureCounts:
    """The counts of features of an audit that found nothing wrong."""
    assert result.ok, result
    assert result.features
    assert (result.lost, result.unexpected, result.features.differing) == (0, 0, 0)
    return result.features
