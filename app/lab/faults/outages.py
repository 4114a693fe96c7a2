"""Faults that last a while: the broker is gone or hangs, or a network is cut. Recovery counts from their end."""

from __future__ import annotations

import time

from lab.faults.effect import Effect
from lab.harness.compose_stack import BROKER, WORKER, ComposeStack

OUTAGE_S = 20.0
#: By which the worker reaches the broker, and nothing else that it needs.
_NETWORK = "kafka"


def stop_broker(stage: ComposeStack) -> Effect:
    """Kills the broker and starts it again; its own start is a part of the recovery."""
    broker = stage.container(BROKER)
    broker.kill()
    try:
        time.sleep(OUTAGE_S)
    finally:
        effect = Effect()
        broker.start()
    return effect


def pause_broker(stage: ComposeStack) -> Effect:
    """Freezes the broker: connections stay open, and nothing answers."""
    broker = stage.container(BROKER)
    broker.pause()
    try:
        time.sleep(OUTAGE_S)
    finally:
        broker.unpause()
    return Effect()


def cut_network(stage: ComposeStack) -> Effect:
    """Takes the worker off the network by which it reaches the broker; driver and master stay in reach."""
    worker = stage.container(WORKER)
    network = stage.stack.client.networks.get(f"{stage.stack.name}_{_NETWORK}")
    aliases = worker.attrs["NetworkSettings"]["Networks"][network.name]["Aliases"]
    network.disconnect(worker)
    try:
        time.sleep(OUTAGE_S)
    finally:
        network.connect(worker, aliases=aliases)
    return Effect()
