"""What Spark makes of a contender's query before any of it runs: its plan, and whether the mode can run it.

A new process asks Spark for each contender, with the contender's settings in its environment, and writes the answer
into a file, its argument. Java ends with it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fraud_filter.config import Settings, load
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.modes import MODES
from lab.bench.contenders import Contender
from lab.harness.embedded_stack import EmbeddedStack
from lab.harness.processes import Child
from lab.harness.programs import environment

_TIMEOUT_S = 240


def plan_contenders(stack: EmbeddedStack, contenders: Sequence[Contender]) -> tuple[list[Contender], dict[str, str]]:
    """The contenders that can run, and Spark's plan of each that has one, by its name.

    A mode that can't run the user's query is left out, and so is the audit of rows whose records are not known; both
    are said, with the reason.

    Raises:
        UsageError: no contender is left.
        FraudFilterError: Spark does not plan a query.
    """
    left: list[Contender] = []
    plans: dict[str, str] = {}
    for one in contenders:
        answer = _ask(stack, one) if one.is_filter else {}
        if refusal := answer.get("refusal"):
            stack.say(f"{one.name} is left out: {refusal}")
            continue
        if unknown := answer.get("unknown"):
            stack.say(f"{one.name}: no audit, and latency only of rows that name their records, as {unknown}")
        left.append(replace(one, has_places=not unknown))
        plans |= {one.name: answer["plan"]} if answer else {}
    if not left:
        raise UsageError(f"no mode can run {stack.settings.query}")
    return left, plans


def _ask(stack: EmbeddedStack, contender: Contender) -> dict[str, str]:
    changes = {**contender.shared, **contender.own, "spark_master": "local[1]"}
    answer, log = stack.workspace.path / f"{contender.label}.json", stack.workspace.logs / f"{contender.label}-plan.log"
    env = {**environment(stack.with_settings(changes).settings), "JAVA_HOME": str(stack.java_home)}
    argv: list[str | Path] = [sys.executable, "-m", "lab.bench.plans", answer]
    with Child(f"planning the query of {contender.name}", argv, log=log, env=env) as child:
        if child.wait(_TIMEOUT_S) != 0:
            child.raise_if_dead()
            raise FraudFilterError(f"Spark did not plan the query of {contender.name} within {_TIMEOUT_S} s")
    found: dict[str, str] = json.loads(answer.read_text(encoding="utf-8"))
    return found


def _plan(settings: Settings) -> dict[str, str]:
    """`refusal`: why the mode can't run it; `unknown`: why places of records are not known; and the `plan`."""
    from fraud_filter.query.filter_query import load_filter
    from fraud_filter.query.preflight import Inputs
    from fraud_filter.query.user_query import UserQuery, load_user_query
    from fraud_filter.query.verdicts import find_refusal
    from fraud_filter.spark import session
    from fraud_filter.supervisor.query_run import plan_query, prepare

    answer = {"refusal": "", "unknown": "", "plan": ""}
    mode = MODES[settings.mode]
    query = load_user_query(settings) if settings.query else load_filter(settings, mode)
    spark = session.start(settings, mode)
    try:
        inputs = plan_query(spark, Inputs(mode, query, 1), settings)
        decisions: Any = prepare(spark, inputs, settings, "").decisions
        if isinstance(inputs.query, UserQuery):
            answer |= {"refusal": find_refusal(decisions, mode), "unknown": inputs.query.without_places}
        if not answer["refusal"]:
            jvm: Any = spark.sparkContext._jvm
            answer["plan"] = jvm.PythonSQLUtils.explainString(decisions._jdf.queryExecution(), "formatted")
    except UsageError as error:
        answer["refusal"] = str(error)
    finally:
        spark.stop()
    return answer


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(_plan(load())), encoding="utf-8")
