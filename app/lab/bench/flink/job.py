"""Runs a Flink SQL statement until SIGTERM. Run by Flink's own Python, which knows nothing of this package.

The argument is a JSON file: `settings` of Flink, what is run `before`, the `statement`, the file that takes its `plan`,
and the directory of `checkpoints`: started again, the job goes on from the newest one.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from pathlib import Path
from typing import Any

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

_LOOK_S = 1.0


def main(file: Path) -> None:
    """Starts the job, and cancels it when told so; exits with 1 when it has ended by itself."""
    # A pipe and no event: a handler that sets one may run where its lock is held.
    told, telling = os.pipe()
    os.set_blocking(telling, False)
    signal.set_wakeup_fd(telling)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    job: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    configuration = Configuration()
    for name, value in job["settings"].items():
        configuration.set_string(name, value)
    complete = [found.parent for found in Path(job["checkpoints"]).glob("*/chk-*/_metadata")]
    if complete:
        newest = max(complete, key=lambda checkpoint: checkpoint.stat().st_mtime)
        configuration.set_string("execution.state-recovery.path", newest.as_uri())
    builder = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration)
    environment = TableEnvironment.create(builder.build())
    for statement in job["before"]:
        environment.execute_sql(statement)
    Path(job["plan"]).write_text(environment.explain_sql(job["statement"]), encoding="utf-8")
    client = environment.execute_sql(job["statement"]).get_job_client()
    while not select.select([told], [], [], _LOOK_S)[0]:
        status = client.get_job_status().result()
        if status.name in ("FAILED", "FAILING", "CANCELED", "FINISHED"):
            client.get_job_execution_result().result()  # raises what it failed of
            sys.exit(f"the job has ended: {status.name}")
    client.cancel().result()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
