"""The list of faults, and what of it is run."""

from __future__ import annotations

import re

import pytest
import yaml

from fraud_filter.compose import env_file
from fraud_filter.compose.stack import FILTER
from fraud_filter.errors import UsageError
from lab.faults.catalogue import FAULTS, choose
from lab.harness.compose_stack import BROKER, KEEPER, MASTER, OVERLAY, WORKER

BASE = yaml.safe_load(env_file.COMPOSE_FILE.read_text())["services"]
OWN = yaml.safe_load(OVERLAY.read_text())


def test_every_fault_has_a_name_of_its_own_that_an_option_can_take() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names) == 16
    assert all(re.fullmatch(r"[a-z-]+", name) for name in names)


def test_those_that_lose_payments_or_change_the_topic_for_good_are_not_repeated() -> None:
    assert [fault.name for fault in FAULTS if not fault.repeatable] == ["partitions-added", "retention"]


def test_all_are_chosen_when_none_is_named_and_the_order_is_the_catalogues() -> None:
    assert choose("") == list(FAULTS)
    assert [fault.name for fault in choose("broker-kill, driver-kill")] == ["driver-kill", "broker-kill"]


@pytest.mark.parametrize("text", ["kill", "driver-kill,", "driver-kill;executor-kill"])
def test_what_is_no_fault_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"argument --only: .* give names of driver-kill, "):
        choose(text)


def test_the_overlay_changes_services_of_the_stack_and_adds_one() -> None:
    assert set(OWN["services"]) - set(BASE) == {KEEPER}
    assert {BROKER, FILTER, MASTER, WORKER} <= set(BASE)


def test_a_worker_without_kafka_s_network_reaches_all_but_the_broker() -> None:
    networks = {name: set(service.get("networks", ())) for name, service in BASE.items()}
    assert networks[WORKER] & networks[BROKER] == {"kafka"}
    for other in (MASTER, FILTER):
        assert (networks[WORKER] - {"kafka"}) & networks[other]


def test_what_is_added_is_as_locked_down_as_the_rest() -> None:
    added = OWN["services"][KEEPER]
    assert (added["cap_drop"], added["read_only"], added["init"]) == (["ALL"], True, True)
    assert added["security_opt"] == BASE[FILTER]["security_opt"]
