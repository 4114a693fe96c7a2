"""The whole experiment: the embedded stack, and the mode as it is and changed, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from fraud_filter.config import ModeName, Settings
from lab.bench.contenders import REGISTRY, Contender
from lab.bench.launch import Launch
from lab.bench.plan import BenchPlan, in_rounds
from lab.bench.results.lines import describe_start
from lab.bench.results.result import StartResult
from lab.bench.results.undisturbed import run_undisturbed
from lab.bench.stage import open_stage
from lab.bench.start import Start
from lab.experiment.change import Change
from lab.experiment.rule_files import check_sizes, write_rules
from lab.experiment.scraper import Scraper
from lab.harness.embedded_stack import EmbeddedStack, Say
from lab.harness.processes import Child, free_ports

#: Settings by which the audit decides what is expected.
_DECIDES = ("rules", "payment_schema", "record_format", "time_unit", "max_record_bytes", "velocity_payments")


@dataclass(frozen=True)
class Trial:
    """What counts of a change in a round. `partitions`: of its input topic.

    `scrapes`: how often its metrics were read, in all its starts.
    """

    change: Change
    start: StartResult
    scrapes: int
    partitions: int


def run_experiment(
    mode: ModeName, changes: Sequence[Change], plan: BenchPlan, settings: Settings, say: Say
) -> list[Trial]:
    """Runs each change once a round, in an order that begins with another one each round.

    Raises:
        UsageError: a change asks for less rules than there are.
        FraudFilterError: the stack could not be started.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP.
    """
    trials: list[Trial] = []
    for change in changes:
        check_sizes(_deciding(settings, change), change.sizes)
    # Task slots for the most partitions; each start has the plan of its own change.
    most = max((change.plan(plan) for change in changes), key=lambda one: one.partitions)
    with open_stage(most, settings, say) as stack:
        for number, change in in_rounds(changes, plan.rounds):
            name = f"{mode}-{changes.index(change)}"
            trials.append(_try(stack, change.plan(plan), mode, change, name, number))
            for line in describe_start(trials[-1].start):
                say(line)
        if not all(trial.start.ok for trial in trials):
            stack.workspace.keep_logs()
    return trials


def _try(stack: EmbeddedStack, plan: BenchPlan, mode: ModeName, change: Change, name: str, number: int) -> Trial:
    """The change with its own plan, in round `number`, under a `name` that topics can have."""
    (port,) = free_ports(1)
    sized = _sized(stack, change, f"rules-{name}-{number}")
    with _checkpoints(change) as folder, Scraper(port) as scraper:
        contender = _changed(mode, change, port, folder)

        def run(again: int) -> StartResult:
            return replace(Start(sized, plan, name, number, contender, again=again).run(), contender=change.name)

        return Trial(change, run_undisturbed(run, plan.repeats, stack.say), scraper.scrapes, plan.partitions)


def _sized(stack: EmbeddedStack, change: Change, folder: str) -> EmbeddedStack:
    """The stack with rules of the size that is asked for; generator and audit know of them too."""
    settings = _deciding(stack.settings, change)
    rules = write_rules(settings, change.sizes, stack.workspace.path / folder)
    return replace(stack, settings=settings.model_copy(update={"rules": rules}))


def _deciding(settings: Settings, change: Change) -> Settings:
    """The settings with those of the change by which is decided."""
    given = {name: change.settings[name] for name in _DECIDES if name in change.settings}
    return settings.model_copy(update=given)


def _checkpoints(change: Change) -> AbstractContextManager[str | None]:
    """A directory where the change wants the checkpoint to lie, for one start."""
    if change.checkpoints is None:
        return nullcontext()
    return TemporaryDirectory(prefix="fraud-filter-", dir=change.checkpoints, ignore_cleanup_errors=True)


def _changed(mode: ModeName, change: Change, port: int, checkpoints: str | None) -> Contender:
    base = REGISTRY[mode]

    def program(launch: Launch) -> Child:
        decides = {name: getattr(launch.stack.settings, name) for name in _DECIDES}
        own = launch.stack.with_settings({**change.settings, **decides, "metrics_port": port})
        return base.program(replace(launch, stack=own, checkpoints=Path(checkpoints) if checkpoints else None))

    return replace(base, program=program)
