"""Jars by their lock: fetches what the local Maven repository lacks and verifies the SHA-256 of every jar.

The lock (`jgo.lock.toml`, written by `tools/jarlock.py`) alone decides what is fetched; nothing is resolved again, and
with all jars present the network is not touched.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import requests
from jgo.config import GlobalSettings
from jgo.env import LockedDependency, LockFile
from jgo.maven import Artifact, MavenContext, PythonResolver
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from fraud_filter.errors import FraudFilterError

SPEC_NAME, LOCK_NAME = "jgo.toml", "jgo.lock.toml"
#: Downloads at a time: enough to hide the latency of small jars, few enough to be a polite guest.
_CONNECTIONS = 4


@dataclass(frozen=True)
class _Jar:
    locked: LockedDependency
    artifact: Artifact
    path: Path

    @property
    def name(self) -> str:
        return self.path.name


def maven_context(repository: Path | None = None) -> MavenContext:
    """The repositories that jars come from: Maven Central, or what the user's jgo configuration says instead.

    `repository` replaces the local repository, by default the one that Maven itself uses.
    """
    settings = GlobalSettings.load()
    return MavenContext(
        repo_cache=repository or settings.repo_cache.expanduser(),
        remote_repos={**MavenContext().remote_repos, **settings.repositories},
    )


def resolve_jars(lock: Path, *, repository: Path | None = None) -> list[Path]:
    """Returns the local paths of all jars of `lock`, in its order, every one verified.

    Missing jars are downloaded, which a line on stderr tells; `repository` as in `maven_context`.

    Raises:
        FraudFilterError: the lock can't be read, a jar can't be fetched, or its SHA-256 differs (the bad
            file is then removed, so that the next call fetches it again).
    """
    context = maven_context(repository)
    jars = [_locate(locked, context) for locked in _read(lock)]
    present = [jar for jar in jars if jar.path.exists()]
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # hashing releases the interpreter lock
        list(pool.map(_verify, present))
    missing = [jar for jar in jars if jar not in present]
    if missing:
        _fetch(missing, context, lock)
    return [jar.path for jar in jars]


def _read(lock: Path) -> list[LockedDependency]:
    try:
        locked: list[LockedDependency] = LockFile.load(lock).dependencies
    except (OSError, ValueError) as error:
        raise FraudFilterError(f"the jar lock {lock} can't be read: {error}") from None
    unpinned = [jar.artifactId for jar in locked if not jar.sha256]
    if unpinned or not locked:
        raise FraudFilterError(f"the jar lock {lock} has no SHA-256 for: {', '.join(unpinned) or 'any jar'}")
    return locked


def _locate(locked: LockedDependency, context: MavenContext) -> _Jar:
    component = context.project(locked.groupId, locked.artifactId).at_version(locked.version)
    artifact = component.artifact(locked.classifier or "", locked.packaging)
    path = artifact.cached_path
    assert path is not None  # noqa: S101 - a context with a local repository always gives one
    return _Jar(locked, artifact, path)


def _verify(jar: _Jar) -> None:
    digest = hashlib.sha256()
    with jar.path.open("rb") as file:
        for block in iter(partial(file.read, 1 << 20), b""):
            digest.update(block)
    if digest.hexdigest() != jar.locked.sha256:
        jar.path.unlink(missing_ok=True)
        raise FraudFilterError(
            f"{jar.name} is not the jar that was locked: expected SHA-256 {jar.locked.sha256}, got "
            f"{digest.hexdigest()}. {jar.path} was removed: try again"
        )


def _fetch(jars: Sequence[_Jar], context: MavenContext, lock: Path) -> None:
    click.echo(f"fetching {len(jars)} jars ({lock.parent.name})", err=True)
    context.repo_cache.mkdir(parents=True, exist_ok=True)
    # Jars are downloaded aside and moved into place when verified: an interruption leaves no half a jar, and
    # two programs that fetch at the same time don't write into each other's files.
    with (
        tempfile.TemporaryDirectory(prefix=".fetch-", dir=context.repo_cache) as aside,
        ThreadPoolExecutor(_CONNECTIONS) as pool,
    ):
        staging = MavenContext(PythonResolver(), Path(aside), remote_repos=context.remote_repos)
        try:
            list(pool.map(partial(_download, staging=staging, context=context), jars))
        finally:
            pool.shutdown(cancel_futures=True)


def _unreachable(jar: _Jar, context: MavenContext, error: requests.RequestException) -> str:
    places = ", ".join(context.remote_repos.values())
    return (
        f"{jar.name} is not in {context.repo_cache} and can't be fetched from {places} "
        f"({type(error).__name__}): check the network or the proxy (HTTPS_PROXY), or name a mirror in "
        "jgo's configuration"
    )


def _download(jar: _Jar, staging: MavenContext, context: MavenContext) -> None:
    try:
        _move_in(jar, _locate(jar.locked, staging))
    except requests.RequestException as error:
        raise FraudFilterError(_unreachable(jar, context, error)) from None
    except RuntimeError as error:  # jgo: no repository has it
        raise FraudFilterError(f"{jar.name} can't be fetched: {error}") from None


@retry(
    retry=retry_if_exception_type(requests.RequestException),
    stop=stop_after_attempt(3),
    wait=wait_random_exponential(multiplier=0.5, max=2),
    reraise=True,
)
def _move_in(jar: _Jar, aside: _Jar) -> None:
    aside.path.unlink(missing_ok=True)  # half a jar of a failed attempt
    aside.artifact.resolve()
    _verify(aside)
    jar.path.parent.mkdir(parents=True, exist_ok=True)
    aside.path.replace(jar.path)
