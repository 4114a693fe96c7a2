"""The broker alone, by Kafka's own EndToEndLatency: it sends a record, reads it back, and then sends the next one."""

from __future__ import annotations

import re
from pathlib import Path

from fraud_filter.errors import FraudFilterError
from fraud_filter.java.jars import resolve_jars
from lab.bench.launch import JAVA_OPTIONS
from lab.harness.embedded_stack import EmbeddedStack
from lab.harness.processes import Child
from lab.harness.supplies import KAFKA_LOCK

_TOOL = "org.apache.kafka.tools.EndToEndLatency"
_RECORDS, _BYTES, _ACKS = 10_000, 300, "all"
_TIMEOUT_S = 120
_SAID = re.compile(r"Avg latency: ([\d.]+) ms\s+Percentiles: 50th = (\d+), 99th = (\d+), 99\.9th = (\d+)")


def measure_broker(stack: EmbeddedStack) -> dict[str, float]:
    """Milliseconds from a record's sending to its reading: the mean, and percentiles that are cut down to whole ones.

    Raises:
        FraudFilterError: the tool failed.
    """
    stack.say(f"the broker alone, {_RECORDS:,} records one after the other")
    classpath = ":".join(map(str, resolve_jars(KAFKA_LOCK)))
    argv: list[str | Path] = [stack.java_home / "bin/java", *JAVA_OPTIONS.split(), "-cp", classpath, _TOOL]
    argv += [stack.settings.kafka_bootstrap_servers, "closed-loop", str(_RECORDS), _ACKS, str(_BYTES)]
    with Child("EndToEndLatency", argv, log=stack.workspace.logs / "closed-loop.log") as tool:
        code = tool.wait(_TIMEOUT_S)
        said = _SAID.search("\n".join(tool.tail()))
        if code != 0 or not said:
            lines = "\n".join(tool.tail(5))
            raise FraudFilterError(f"the broker alone could not be measured, exit code {code}:\n{lines}")
    return dict(zip(("mean_ms", "p50_ms", "p99_ms", "p999_ms"), map(float, said.groups()), strict=True))
