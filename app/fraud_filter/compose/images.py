"""The images: the base, Grafana's from its registry, and ours, built from this checkout."""

from __future__ import annotations

import os
import subprocess

import click
from docker.errors import ImageNotFound

from fraud_filter.compose.stack import GRAFANA, Stack
from fraud_filter.errors import FraudFilterError
from fraud_filter.home import HOME

#: A registry that is there gives the image in this time, also over a slow line.
_PULL_S = 180
_SHOWN_LINES = 20


def prepare(stack: Stack) -> None:
    """Gets the base image and Grafana's, and builds ours. Leaves Grafana out of this run when it can't be had.

    Raises:
        FraudFilterError: no base image, or a build failed; the build's last lines are in the message.
    """
    # The base image is named in .env, which the script does not read.
    base = subprocess.run([HOME / "app/base"], env={**os.environ, "BASE_IMAGE": stack.value("BASE_IMAGE")}, check=False)
    if base.returncode:
        raise FraudFilterError("there is no base image to build on: see the line above")
    stack.values["BASE_IMAGE"] = base_image(stack)
    if GRAFANA in stack.profiles and not _has_image(stack, stack.value("GRAFANA_IMAGE")):
        _pull_grafana(stack, stack.value("GRAFANA_IMAGE"))
    click.echo("building images")
    built = stack.compose("build")
    if built.returncode:
        raise FraudFilterError("a build failed:\n" + "\n".join(built.stdout.splitlines()[-_SHOWN_LINES:]))


def base_image(stack: Stack) -> str:
    """Name of the base image that is here: one that was made here was in no registry, and has no digest."""
    image = stack.value("BASE_IMAGE")
    return image if _has_image(stack, image) else image.partition("@")[0]


def _has_image(stack: Stack, image: str) -> bool:
    try:
        stack.client.images.get(image)
    except ImageNotFound:
        return False
    return True


def _pull_grafana(stack: Stack, image: str) -> None:
    click.echo(f"pulling {image}")
    try:
        pulled = subprocess.run(
            ["docker", "pull", "--quiet", image], capture_output=True, timeout=_PULL_S, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        pulled = 1
    if pulled:
        stack.profiles.remove(GRAFANA)
        click.echo(f"Grafana is left out: no registry has {image}; Prometheus shows the same metrics")
