"""Finds a Java that Spark and Kafka can run on, and gets one where there is none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from fraud_filter.errors import FraudFilterError, UsageError

#: Major versions that Spark 4.3 supports, the preferred one first.
SUPPORTED = (17, 21)
#: Spark's launcher adds this module; a trimmed runtime without it can't start Spark.
VECTOR_MODULE = "jdk.incubator.vector"

#: Where Linux distributions install Java.
_INSTALLED = Path("/usr/lib/jvm")
_ANSWER_TIMEOUT_S = 30

Say = Callable[[str], None]


@dataclass(frozen=True)
class Java:
    """What one `java` said about itself: home, major version (0: none), why it can't be used, if so; full version."""

    home: Path
    version: int
    problem: str | None
    full_version: str = ""


def inspect(java: Path) -> Java:
    """Asks the executable `java` for its version, its home and its modules (about 50 ms)."""
    guess = java.resolve().parent.parent
    command: list[str | Path] = [java, "-XshowSettings:properties", "--list-modules"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWER_TIMEOUT_S, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return Java(guess, 0, f"does not run: {error}")
    output = answer.stdout + answer.stderr
    modules = dict(re.findall(r"^([\w.]+)@(\d+)", output, re.MULTILINE))
    if "java.base" not in modules:
        return Java(guess, 0, "does not list its modules: Java 8 or older, or no Java")
    # A `java` on the PATH may be a wrapper script; only the runtime knows its home.
    told = dict(re.findall(r"^\s*java\.(home|version) = (.+)$", output, re.MULTILINE))
    version = int(modules["java.base"])
    problem = None
    if version not in SUPPORTED:
        problem = f"is Java {version}"
    elif VECTOR_MODULE not in modules:
        problem = f"is a trimmed Java {version} without the module {VECTOR_MODULE}"
    return Java(Path(told.get("home", guess)), version, problem, told.get("version", ""))


def find_java(say: Say | None = None) -> Path | None:
    """Returns the home of a usable Java: JAVA_HOME, then the PATH, then what the distribution has installed.

    Each one that can't be used is named, with the reason, through `say` (stderr by default).
    """
    for place, java in _candidates():
        found = inspect(java)
        if found.problem is None:
            return found.home
        (say or _to_stderr)(f"{place}: {java} {found.problem}; Java {_wanted()} is needed, looking on")
    return None


def require_java(say: Say | None = None) -> Path:
    """Returns the home of a usable Java; cjdk downloads one into the user's cache where there is none.

    What is done is told through `say` (stderr by default).

    Raises:
        UsageError: there is no usable Java and none could be downloaded; the message says what to install.
    """
    say = say or _to_stderr
    try:
        return find_java(say) or _download(say)
    except FraudFilterError as error:
        raise UsageError(
            f"no Java {_wanted()} was found, and none could be downloaded ({error}): install one "
            "(Debian, Ubuntu: openjdk-17-jre-headless or openjdk-21-jre-headless) or set JAVA_HOME to one"
        ) from None


def _wanted() -> str:
    return " or ".join(map(str, SUPPORTED))


def _to_stderr(line: str) -> None:
    click.echo(line, err=True)


def _candidates() -> Iterator[tuple[str, Path]]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield "PATH", Path(on_path)
    for version in SUPPORTED:
        for java in sorted(_INSTALLED.glob(f"*{version}*/bin/java")):
            yield str(_INSTALLED), java


def _download(say: Say) -> Path:
    import cjdk

    say("no usable Java: fetching one with cjdk")
    try:
        found = inspect(cjdk.java_home(version=str(SUPPORTED[0])) / "bin" / "java")
    except Exception as error:  # cjdk lets errors of its HTTP library through, beside its own
        raise FraudFilterError(f"cjdk could not fetch one: {textwrap.shorten(str(error), 120)}") from None
    if found.problem:
        raise FraudFilterError(f"the Java that cjdk fetched {found.problem}")
    return found.home
