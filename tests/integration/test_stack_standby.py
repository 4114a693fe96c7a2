"""Two filters on one stack: one is killed, or hands over, and the other goes on; nothing is lost on the way."""

from __future__ import annotations

import pytest

from audits import committed_past_the_end, nothing_is_lost
from deployed import Deployed
from fraud_filter.compose import env_file, rollout
from fraud_filter.compose.stack import FILTER, STANDBY
from fraud_filter.config import ModeName, load
from fraud_filter.home import HOME
from fraud_filter.probe.probe import Probe
from lab.harness.compose_stack import ComposeStack
from lab.trials.catalogue import DISTURBANCES
from lab.trials.plan import Trial
from lab.trials.stack import StackRun
from waiting import wait_until

#: Velocity in real-time mode, with batches and a warm-up that a test can wait for.
_CHANGES = {
    "FRAUD_MODE": "real-time",
    "FRAUD_RULES": "app/rules-velocity.yml",
    "FRAUD_REAL_TIME_DURATION": "10 seconds",
    "FRAUD_STANDBY_WARM_UP_S": "3",
    "GENERATOR_RATE": "50",
    "COMPOSE_PROFILES": "",  # Grafana can't be had everywhere
}
_BOTH = {FILTER, STANDBY}
#: One for each of the two partitions of the input, and of the state of the rules with velocity, which the stack runs.
SLOTS = 4
_START_S = 300


@pytest.fixture(scope="module")
def before(stack: Deployed) -> dict[str, int]:
    """What was committed when the stack was taken down."""
    committed = committed_past_the_end(stack)
    down = stack.call("down")
    assert down.returncode == 0, down.stdout
    assert stack.open().states() == []
    status = stack.call("status")
    assert (status.returncode, status.stdout) == (1, "fraud-filter-test is not running: `fraud-filter up` starts it\n")
    return committed


@pytest.fixture(scope="module")
def pair(stack: Deployed, before: dict[str, int]) -> Deployed:
    """The stack, up again, with a standby from now on."""
    assert before
    for name, value in _CHANGES.items():
        env_file.change(stack.env, name, value)
    up = stack.call("up", "--standby", "--timeout", "700")
    assert up.returncode == 0, up.stdout
    return stack


def active(pair: Deployed) -> str:
    return wait_until("a filter is active", lambda: rollout.active(pair.open()), _START_S) or ""


def await_standby(pair: Deployed) -> str:
    """Both are healthy, which one that does not work is only when it can take over; returns the one that waits."""

    def waits() -> str:
        stack = pair.open()
        ready = {state.service for state in stack.states() if state.ready}
        (other,) = _BOTH - {rollout.active(stack)}
        return other if ready >= _BOTH and rollout.total(stack, other, ("fraud_filter_healthy",)) == 0 else ""

    return wait_until("the other one waits", waits, _START_S)


def alerts(pair: Deployed) -> set[str]:
    found = pair.json("PROMETHEUS_PORT", "/api/v1/alerts")["data"]["alerts"]
    return {alert["labels"]["alertname"] for alert in found if alert["state"] == "firing"}


def test_both_run_and_status_names_them(pair: Deployed) -> None:
    states = [state for state in pair.open().states() if not state.one_shot]
    assert {state.service for state in states} >= {FILTER, STANDBY, "spark-worker", "standby-worker"}
    both = f"{active(pair)}, {await_standby(pair)}"

    def shown() -> bool:
        status = pair.call("status")
        assert status.returncode == 0, status.stdout
        return both in " ".join(status.stdout.split())

    assert wait_until(f"status shows {both}", shown, every_s=3)


def test_each_has_executors_of_its_own_and_prometheus_reaches_both(pair: Deployed) -> None:
    def applications() -> list[tuple[str, int]]:
        return [(app["state"], app["cores"]) for app in pair.json("SPARK_MASTER_UI_PORT", "/json/")["activeapps"]]

    assert wait_until("two applications", lambda: applications() == [("RUNNING", SLOTS)] * 2)
    workers = pair.json("SPARK_MASTER_UI_PORT", "/json/")["workers"]
    assert [worker["coresused"] for worker in workers if worker["state"] == "ALIVE"] == [SLOTS, SLOTS]

    def targets() -> dict[str, str]:
        found = pair.json("PROMETHEUS_PORT", "/api/v1/targets")["data"]["activeTargets"]
        return {target["scrapeUrl"].partition("//")[2].partition("/")[0]: target["health"] for target in found}

    wanted = {"fraud-filter:9400", "standby:9400", "standby:9404"}
    assert wait_until("both are scraped", lambda: {n for n, health in targets().items() if health == "up"} >= wanted)
    wait_until("no alert", lambda: not alerts(pair) & {"FraudFilterDown", "FraudFilterNoStandby"})


def disturb(pair: Deployed, name: str, to: ModeName | None = None) -> None:
    """As `fraud-filter lab trial --stack` does it."""
    settings, act = load(env_file=pair.env), DISTURBANCES[name].stack
    assert act
    with Probe(settings) as probe:
        run = StackRun(ComposeStack(pair.open(), settings, probe, print), 2.0)
        run.steady()
        found = run.disturb(Trial(name, settings.mode, to or settings.mode, True, "stack"), act)
    print(f"measured: {found}")  # noqa: T201 - shown by -s
    assert found.ok, found


@pytest.mark.exhaustive  # a container is killed below, Java and executors in tests/embedded
@pytest.mark.parametrize("name", ["executor-kill", "java-kill"])
def test_a_killed_part_of_the_active_filter_loses_nothing(pair: Deployed, name: str) -> None:
    """An executor, beside those of the standby, and Spark's Java."""
    await_standby(pair)
    disturb(pair, name)


def test_the_standby_goes_on_when_the_active_container_is_killed(pair: Deployed) -> None:
    """And Docker restarts it."""
    former, following = active(pair), await_standby(pair)
    disturb(pair, "kill")
    assert active(pair) == following
    assert wait_until("it is told", lambda: "FraudFilterTookOver" in alerts(pair))
    assert await_standby(pair) == former
    assert "FraudFilterDown" not in alerts(pair)


def test_a_switch_is_a_handover_and_the_former_one_waits_in_the_new_mode(pair: Deployed) -> None:
    """Micro-batches run without the rules that look at what a card did before."""
    former, following = active(pair), await_standby(pair)
    refused = pair.call("rollout", "--mode", "micro-batch", FRAUD_FEATURES_UNSUPPORTED="refuse")
    assert refused.returncode == 2, refused.stdout
    assert "can't compute the features of the rules" in refused.stdout
    env_file.change(pair.env, "FRAUD_LINGER_MS", "1")
    disturb(pair, "switch", "micro-batch")
    assert (active(pair), await_standby(pair)) == (following, former)
    both = [state for state in pair.open().states() if state.service in _BOTH]
    for state in both:  # what the .env file says now, too
        assert {"FRAUD_MODE=micro-batch", "FRAUD_LINGER_MS=1"} <= set(state.container.attrs["Config"]["Env"])
    logs = {state.service: state.container.logs().decode() for state in both}
    assert "event=asking_for_handover at=commit" in logs[following]
    assert "event=state_dropped" in logs[following]


@pytest.mark.exhaustive  # the way there is above, and other features make their state again in tests/embedded
def test_a_rollout_takes_the_mode_of_the_env_file_and_all_rules_decide_again(pair: Deployed) -> None:
    await_standby(pair)
    changes = {"FRAUD_MODE": "real-time", "FRAUD_LINGER_MS": "0"}
    for name, value in changes.items():
        env_file.change(pair.env, name, value)
    rolled = pair.call("rollout")
    assert rolled.returncode == 0, rolled.stdout
    active_one = active(pair)
    (state,) = [state for state in pair.open().states() if state.service == active_one]
    assert {f"{name}={value}" for name, value in changes.items()} <= set(state.container.attrs["Config"]["Env"])


def test_a_rollout_of_nothing_new_and_one_of_rules_that_are_refused_change_nothing(pair: Deployed) -> None:
    await_standby(pair)
    before = {state.container.id for state in pair.open().states()}
    same = pair.call("rollout")
    assert (same.returncode, same.stdout.splitlines()[-1]) == (0, "both filters are up to date: nothing to do")
    assert {state.container.id for state in pair.open().states()} == before
    bad = pair.open().conf / "bad.yml"
    bad.parent.mkdir(exist_ok=True)
    bad.write_text("rules:\n  - name: unknown\n    when: no_such_function(amount) > 1\n")
    refused = pair.call("rollout", FRAUD_RULES="conf/bad.yml")
    bad.unlink()
    assert refused.returncode == 2, refused.stdout
    assert "no_such_function" in refused.stdout
    assert {state.container.id for state in pair.open().states()} == before


def test_nothing_was_lost_on_the_way_since_the_stack_was_taken_down(pair: Deployed, before: dict[str, int]) -> None:
    found = nothing_is_lost(pair)
    assert found["payments"] > sum(before.values()) > 0
    features = found["features"]
    assert features["decisions"] > 0, features
    assert (features["differing"], features["untold"]) == (0, 0), features


@pytest.mark.exhaustive  # 85 s; tests/embedded has the takeover and the handover of such a query
def test_a_query_of_yours_is_handed_over_to_and_goes_on_after_a_kill(
    pair: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file lies in the folder conf, and every record of then on has its row, once."""
    await_standby(pair)
    (pair.open().conf / "enrich.py").write_bytes((HOME / "app/examples/enrich.py").read_bytes())
    for name in ("FRAUD_RULES", "FRAUD_FEATURES_UNSUPPORTED"):
        env_file.remove(pair.env, name)
    env_file.change(pair.env, "FRAUD_QUERY", "conf/enrich.py:transform")
    monkeypatch.chdir(pair.env.parent)
    rolled = pair.call("rollout")
    assert rolled.returncode == 0, rolled.stdout
    disturb(pair, "kill")


def test_without_a_standby_the_other_goes_on_alone(pair: Deployed) -> None:
    await_standby(pair)
    up = pair.call("up", "--no-standby", "--timeout", "500")
    assert up.returncode == 0, up.stdout
    assert {state.service for state in pair.open().states()} & {STANDBY, "standby-worker"} == set()
    assert active(pair) == FILTER
