"""`fraud-filter check-query`: a verdict for each mode, and whether the engine comes to the same one."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from fraud_filter.config import ModeName
from fraud_filter.home import HOME
from running import Stage, call, payment, wait_until

START = "from pyspark.sql import functions as F\ndef transform(records):\n    return records"
AGGREGATE = "aggregation (groupBy, count, distinct), which {} mode can't run"
MODES = get_args(ModeName)
#: What a function makes of its records, by the modes that run it.
QUERIES = {
    ".select('value').where('offset >= 0')": MODES,
    ".select(F.udf(bytes, 'binary')('value').alias('value'))": ("micro-batch", "async-progress", "continuous"),
    ".select(F.current_timestamp().cast('string').alias('value'))": ("micro-batch", "async-progress", "real-time"),
    ".select(F.explode(F.array('value', 'value')).alias('value'))": ("micro-batch", "async-progress", "real-time"),
    ".select('value').union(records.select('value'))": ("micro-batch", "async-progress"),
    ".select('key', 'value').join(records.select('key'), 'key').select('value')": ("micro-batch",),
    ".select('value').dropDuplicates()": ("micro-batch", "real-time"),
    ".groupBy('value').agg(F.count('*')).select('value')": ("micro-batch", "real-time"),
    ".groupBy('value').count().groupBy('count').agg(F.max('value').alias('value')).select('value')": (),
    ".select('value').sort('value')": (),
    ".select('value').limit(5)": (),
}


def verdicts(query: str, code: int = 0) -> dict[str, str]:
    done = call("check-query", query)
    assert done.returncode == code, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 5
    return {name: said.strip() for name, _, said in (line.partition(" ") for line in lines)}


def test_the_table_of_an_aggregate(tmp_path: Path) -> None:
    told = verdicts(f"{HOME}/app/examples/totals.py:transform")
    assert (told["micro-batch"], told["real-time"]) == ("yes", "yes")
    for mode in ("async-progress", "continuous"):
        assert told[mode].startswith("no: ")
        assert AGGREGATE.format(mode) in told[mode]
    reason = "as the query contains an aggregation (groupBy, count, distinct)"
    assert told["latency,"].endswith(f"not known, {reason}")
    audited = call("audit", "--query", f"{HOME}/app/examples/totals.py:transform", "--checkpoint", tmp_path / "none")
    assert audited.returncode == 2, audited.stderr
    assert f"can't be audited, {reason}; the audit takes queries" in audited.stderr


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("made", "able"), QUERIES.items())
def test_each_engine_comes_to_the_same_verdict(
    stage: Stage, tmp_path: Path, made: str, able: tuple[ModeName, ...]
) -> None:
    query = f"{tmp_path}/own.py:transform"
    (tmp_path / "own.py").write_text(f"{START}{made}\n")
    told = verdicts(query, 0 if able else 2)
    assert {mode for mode in MODES if told[mode] == "yes"} == set(able), told
    for mode in MODES:
        before = len(stage.written()[stage.flagged])
        stage.send([("c", payment("p", 1))])
        own = {"query": query, "rejected_topic": "", "checkpoint": str(tmp_path / mode), "starting_offsets": "earliest"}
        with stage.run(mode=mode, continuous_interval="2 seconds", **own) as program:
            if mode in able:
                found = lambda least=before: len(stage.written()[stage.flagged]) > least  # noqa: E731
                wait_until(found, f"a row in {mode} mode", program)
                assert program.stop(30) == 0, program.tail()
            else:
                assert program.wait(90) == 2, program.tail()
