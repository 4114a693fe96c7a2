"""What must hold before anything is built or started: the payments' schema, the rules, brokers, cores."""

from __future__ import annotations

from fraud_filter.compose import conf
from fraud_filter.compose.stack import FILTER, Stack
from fraud_filter.config import Settings, env_name, load
from fraud_filter.errors import EXIT_USAGE, FraudFilterError, UsageError
from fraud_filter.modes import MODES
from fraud_filter.query.preflight import state_partitions
from fraud_filter.rules.ruleset import RuleSet, load_rules
from fraud_filter.schema import load_schema

#: Settings that the stack's containers have values of their own for (docker-compose.yml).
INSIDE = ("FRAUD_METRICS_HOST", "FRAUD_UI_PORT")

#: Begins each line that a program says of its own.
_SAID = "fraud-filter: "


def check_all(stack: Stack) -> Settings:
    """Every check of this module, and the program's own settings in the stack's `.env`.

    Raises:
        UsageError: names the setting or the file, its value, and what to do.
    """
    settings = load(env_file=stack.env)
    conf.check(stack, settings)
    check_servers(stack, settings)
    check_cores(stack.values, settings.mode, count_state(stack, settings))
    return settings


def check_servers(stack: Stack, settings: Settings) -> None:
    """Checks that containers can reach a Kafka that is not the stack's own.

    Raises:
        UsageError: an address means the container itself.
    """
    servers = settings.kafka_bootstrap_servers
    here = [server for server in servers.split(",") if server.startswith(("127.", "localhost:", "[::1]:"))]
    if here and not stack.own_kafka:
        raise UsageError(
            f"KAFKA_BOOTSTRAP_SERVERS={servers}: in a container {here[0]} is the container itself: give the address by "
            "which other machines reach the cluster"
        )


def read_rules(stack: Stack, settings: Settings) -> RuleSet:
    """The rules of the stack's filter.

    Raises:
        UsageError: schema or rules are wrong, or lie where no container sees them.
    """
    return load_rules(conf.find(stack, settings, "rules"), load_schema(conf.find(stack, settings, "payment_schema")))


def count_state(stack: Stack, settings: Settings) -> int:
    """The partitions of the features' state, 0 in a mode that computes none.

    Raises:
        UsageError: as of `read_rules`.
    """
    return state_partitions(read_rules(stack, settings).features, settings)


def check_cores(values: dict[str, str], mode: str, state: int = 0) -> None:
    """Checks that each partition gets a core where the mode holds a task for each partition permanently.

    Args:
        state: the partitions of the features' state, each of which takes a core too.

    Raises:
        UsageError: there are too few; names both numbers.
    """
    partitions, cores = _number(values, "KAFKA_PARTITIONS"), _number(values, "SPARK_WORKER_CORES")
    workers = _number(values, "SPARK_WORKERS")
    needed = partitions + state
    if MODES[mode].holds_tasks and needed > cores * workers:  # type: ignore[index]
        with_state = f" and {env_name('velocity_partitions')}={state} need" if state else " needs"
        raise UsageError(
            f"KAFKA_PARTITIONS={partitions}{with_state} {needed} cores in {mode} mode, and SPARK_WORKER_CORES={cores} "
            f"with SPARK_WORKERS={workers} gives {cores * workers}: raise one of these two"
        )


def _number(values: dict[str, str], name: str) -> int:
    text = values.get(name, "")
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"{name}={text} is not accepted: give a whole number from 1")
    return int(text)


def check_rules_in_image(stack: Stack) -> None:
    """Has the filter's image check the rules as the filter does at its start, with the files that it has.

    A container of its own does this: nothing that runs is touched.

    Raises:
        UsageError: a rule is refused; has what was said of each.
        FraudFilterError: the check itself could not run.
    """
    words = ("run", "--rm", "--no-deps", "--no-TTY", FILTER, "fraud-filter", "rules", "check")
    checked = stack.compose(*words)
    if checked.returncode == EXIT_USAGE:
        said = [line for line in checked.stdout.splitlines() if line.startswith(_SAID)]
        raise UsageError("\n".join(line.removeprefix(_SAID) for line in said) or checked.stdout.strip())
    if checked.returncode:
        raise FraudFilterError(f"the rules could not be checked: {checked.stdout.strip()}")
