"""What records hold never acts on a terminal: the programs on a real Spark and a real broker, fed with escapes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from fraud_filter.home import HOME
from running import GOOD

#: Sets a terminal's title, clears it (ESC, and C1's own letter for it), turns the writing, forges a line.
HOSTILE = "p\x1b]0;owned\x07\x9b2J\u202egnp\u2066\nnothing lost"
ACTING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
_CODE = [sys.executable, "-m", "fraud_filter"]


def call(words: list[str], environment: dict[str, str] | None = None) -> str:
    """Both outputs of a program."""
    done = subprocess.run(
        words, env={**os.environ, "PYTHONIOENCODING": "utf-8", **(environment or {})}, check=False, timeout=120,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    shown = done.stdout.decode()
    assert "owned" in shown, shown
    return shown


def test_rules_test_shows_ids_and_fields_as_text(tmp_path: Path) -> None:
    field = "card\x1b]0;owned\x07"
    schema = tmp_path / "payment.ddl"
    schema.write_text((HOME / "app/payment.ddl").read_text() + f",\n`{field}` STRING NOT NULL\n")
    payments = tmp_path / "payments.jsonl"
    complete = {**GOOD, "payment_id": HOSTILE, field: "x"}
    payments.write_text(f"{json.dumps(complete)}\n{json.dumps({**GOOD, 'payment_id': HOSTILE})}\n")
    words = [*_CODE, "rules", "test", str(payments), "--payment-schema", str(schema)]
    shown = call(words)
    assert not ACTING.search(shown), repr(shown)
    assert r"p\x1b]0;owned\x07\x9b2J\u202egnp\u2066\nnothing lost" in re.sub(r"[^\S\n]*│?\n│[ │]*", "", shown)
    assert r"missing-field: card\x1b]0;owned\x07" in re.sub(r"\s*│\n(│\s*)+", " ", shown)
    assert not ACTING.search(call([*words, "--json"]))


def test_spark_s_log_shows_messages_and_exceptions_as_text() -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from fraud_filter.config import load; from fraud_filter.spark import session\n"
        "spark = session.start(load({'spark_master': 'local[1]'}, Path('/dev/null')))\n"
        "log = spark._jvm.org.apache.logging.log4j.LogManager.getLogger('record')\n"
        "log.warn(sys.argv[1])\n"
        "log.error('the cause', spark._jvm.java.lang.RuntimeException(sys.argv[1]))\n"
        "spark.stop()"
    )
    shown = call([sys.executable, "-c", code, HOSTILE])
    assert not ACTING.search(shown), repr(shown)
    assert shown.count("\ufffd]0;owned\ufffd\ufffd2J") == 2, shown
    assert shown.count("java.lang.RuntimeException") == 1, shown
