"""What the figures were measured with: this machine and the versions of everything that took part."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import psutil

import fraud_filter


def describe_machine() -> dict[str, str | int | float]:
    """This machine: cores that this process may use, memory in GiB, operating system, processor."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    return {
        "cores": len(affinity(0)) if affinity else os.cpu_count() or 1,
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "os": _operating_system(),
        "cpu": _processor(),
    }


def describe_versions(*, kafka: str, java: str) -> dict[str, str]:
    """Versions of what took part; those of the broker and of Java are known to who started them."""
    return {
        "fraud_filter": fraud_filter.__version__,
        "python": platform.python_version(),
        "spark": metadata.version("pyspark"),
        "kafka": kafka,
        "java": java,
    }


def kafka_version(jars: Sequence[Path]) -> str:
    """The version of the broker among these jars."""
    names = (re.fullmatch(r"kafka_[\d.]+-(.+)\.jar", jar.name) for jar in jars)
    return next((name.group(1) for name in names if name), "unknown")


def _operating_system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):  # no Linux, or one without os-release
        return platform.platform(terse=True)


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())  # ARM's cpuinfo carries no name
