"""The whole bench: the embedded stack, the contenders round by round, and the results as a report."""

from __future__ import annotations

import time
from functools import partial

from fraud_filter.config import Settings
from fraud_filter.modes import KNOBS
from lab.bench.contenders import REGISTRY
from lab.bench.plan import DRIFT, BenchPlan, in_rounds
from lab.bench.results.lines import describe_start
from lab.bench.results.report import BenchReport
from lab.bench.results.result import StartResult
from lab.bench.results.undisturbed import run_undisturbed
from lab.bench.stage import open_stage
from lab.bench.start import Start
from lab.harness.embedded_stack import EmbeddedStack, Say
from lab.harness.machine import describe_machine

#: What the report tells of the plan, besides the rates.
_TOLD = (
    *("rounds", "seconds", "settle_s", "warmup_s", "warmup_rate", "partitions", "flagged_share", "malformed_share"),
    *("seed", "repeats"),
)


def run_bench(plan: BenchPlan, settings: Settings, say: Say) -> BenchReport:
    """Runs the bench; everything that it started is stopped when it returns, and also when it is interrupted.

    A start that fails is recorded with its reason, and the logs are kept; the next one runs all the same.

    Raises:
        FraudFilterError: the stack could not be started, or a contender's model not be trained.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP.
    """
    began = time.monotonic()
    with open_stage(plan, settings, say) as stack:
        versions = dict(stack.versions)
        for name in plan.contenders:
            versions |= REGISTRY[name].versions()
            REGISTRY[name].settings(stack)  # what has to be made for them is there before the first round
        starts: list[StartResult] = []
        for number, name in in_rounds(plan.contenders, plan.rounds):
            starts.append(run_undisturbed(partial(_run, stack, plan, name, number), plan.repeats, say))
            for line in describe_start(starts[-1]):
                say(line)
        report = BenchReport(
            plan=plan,
            starts=starts,
            versions=versions,
            machine=describe_machine(),
            settings=_describe_settings(plan, stack.settings),
            took_s=time.monotonic() - began,
        )
        if not report.ok:
            stack.workspace.keep_logs()
    return report


def _run(stack: EmbeddedStack, plan: BenchPlan, name: str, number: int, again: int) -> StartResult:
    return Start(stack, plan, name, number, again=again).run()


def _describe_settings(plan: BenchPlan, settings: Settings) -> dict[str, str | int | float]:
    planned: dict[str, str | int | float] = {
        "rates": ", ".join(f"{rate:g}" for rate in plan.rates),
        "sent_share_of_rate": DRIFT,
        **{name: getattr(plan, name) for name in _TOLD},
        "cores_kept_awake": "yes" if plan.awake else "no",
    }
    return planned | {knob: getattr(settings, knob) for knob in ("spark_master", *KNOBS)}
