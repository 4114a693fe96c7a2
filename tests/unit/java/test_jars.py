"""Jars by their lock, from a Maven repository that a local web server plays; nothing leaves this machine."""

from __future__ import annotations

import hashlib
import importlib.util
import socket
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from click.testing import CliRunner
from jgo.env import LockFile, compute_spec_hash

from fraud_filter.errors import FraudFilterError
from fraud_filter.home import HOME
from fraud_filter.java.jars import SPEC_NAME, resolve_jars
from jarcopy import main
from lab.harness.supplies import KAFKA_LOCK, SPARK_LOCK
from serving import Quiet, serve

JARS = {"alpha": b"first jar", "beta": b"second jar" * 100_000, "gamma": b"third jar"}


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def put(folder: Path, name: str, content: bytes) -> Path:
    path = folder / f"org/example/{name}/1.0/{name}-1.0.jar"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    entries = [
        f'[[dependencies]]\ngroupId = "org.example"\nartifactId = "{name}"\nversion = "1.0"\n'
        f'packaging = "jar"\nsha256 = "{digest(content)}"\n'
        for name, content in JARS.items()
    ]
    path = tmp_path / "jgo.lock.toml"
    path.write_text("\n".join(entries))
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def use_repository(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = tmp_path / "jgo.conf"
    configuration.write_text(f"[repositories]\ncentral = {url}\n")
    monkeypatch.setenv("JGO_CONFIG_FILE", str(configuration))


@pytest.fixture
def unreachable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    use_repository(url, tmp_path, monkeypatch)
    return url


class Files(Quiet, SimpleHTTPRequestHandler):
    """Those of a directory."""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that is served as the Maven repository."""
    folder = tmp_path / "repository"
    folder.mkdir()
    with serve(partial(Files, directory=str(folder))) as address:
        use_repository(f"http://{address}", tmp_path, monkeypatch)
        yield folder


def test_missing_jars_are_fetched_in_the_order_of_the_lock(lock: Path, cache: Path, repository: Path) -> None:
    for name, content in JARS.items():
        put(repository, name, content)
    paths = resolve_jars(lock, repository=cache)
    assert [path.name for path in paths] == ["alpha-1.0.jar", "beta-1.0.jar", "gamma-1.0.jar"]
    assert [path.read_bytes() for path in paths] == list(JARS.values())
    assert not list(cache.glob(".fetch-*")), "the staging directory is gone"


@pytest.mark.usefixtures("unreachable")
def test_present_jars_need_no_network(lock: Path, cache: Path) -> None:
    expected = [put(cache, name, content) for name, content in JARS.items()]
    assert resolve_jars(lock, repository=cache) == expected


def test_changed_jar_is_refused_and_removed(lock: Path, cache: Path, repository: Path) -> None:
    paths = [put(cache, name, content) for name, content in JARS.items()]
    paths[1].write_bytes(b"another jar")
    with pytest.raises(FraudFilterError) as caught:
        resolve_jars(lock, repository=cache)
    message = str(caught.value)
    assert "beta-1.0.jar" in message
    assert f"expected SHA-256 {digest(JARS['beta'])}, got {digest(b'another jar')}" in message
    assert "try again" in message
    assert [path.exists() for path in paths] == [True, False, True]
    put(repository, "beta", JARS["beta"])
    assert resolve_jars(lock, repository=cache)[1].read_bytes() == JARS["beta"], "it is fetched anew"


def test_wrong_download_never_reaches_the_cache(lock: Path, cache: Path, repository: Path) -> None:
    for name in JARS:
        put(repository, name, b"wrong")
    with pytest.raises(FraudFilterError, match=f"got {digest(b'wrong')}"):
        resolve_jars(lock, repository=cache)
    assert not list(cache.rglob("*.jar"))


def test_jar_that_no_repository_has_is_named(lock: Path, cache: Path, repository: Path) -> None:
    put(repository, "alpha", JARS["alpha"])
    put(repository, "gamma", JARS["gamma"])
    with pytest.raises(FraudFilterError, match=r"beta-1\.0\.jar can't be fetched: .*not found"):
        resolve_jars(lock, repository=cache)


def test_no_network_is_one_line(lock: Path, cache: Path, unreachable: str) -> None:
    with pytest.raises(FraudFilterError) as caught:
        resolve_jars(lock, repository=cache)
    assert f"can't be fetched from {unreachable} (ConnectionError): check the network" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("not = [toml", "can't be read"),
        ("", "no SHA-256 for: any jar"),
        ('[[dependencies]]\ngroupId = "g"\nartifactId = "loose"\nversion = "1"', "no SHA-256 for: loose"),
    ],
)
def test_bad_lock_is_explained(tmp_path: Path, text: str, reason: str) -> None:
    lock = tmp_path / "bad.toml"
    lock.write_text(text)
    with pytest.raises(FraudFilterError, match=reason):
        resolve_jars(lock)


@pytest.mark.parametrize("lock", [KAFKA_LOCK, SPARK_LOCK, HOME / "monitoring/jmx/jgo.lock.toml"])
def test_committed_lock_belongs_to_its_specification(lock: Path) -> None:
    content = LockFile.load(lock)
    assert content.spec_hash == compute_spec_hash(lock.with_name(SPEC_NAME)), "run `make lock`"
    assert all(len(jar.sha256 or "") == 64 for jar in content.dependencies)


def test_spark_lock_repeats_no_jar_of_pyspark() -> None:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    shipped = {path.name for path in (Path(spec.origin).parent / "jars").glob("*.jar")}
    assert len(shipped) > 100
    for jar in LockFile.load(SPARK_LOCK).dependencies:
        assert not [name for name in shipped if name.startswith(f"{jar.artifactId}-")]


# -- the jars of a lock in a folder, as the images get them


JAR = b"a jar"


@pytest.fixture
def single(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of one jar, which lies in the local repository."""
    repository = tmp_path / "repository"
    jar = repository / "org/example/alpha/1.0/alpha-1.0.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(JAR)
    configuration = tmp_path / "jgo.conf"
    configuration.write_text(f"[settings]\nm2_repo = {repository}\nrepo_cache = {repository}\n")
    monkeypatch.setenv("JGO_CONFIG_FILE", str(configuration))
    monkeypatch.setenv("M2_REPO", str(repository))
    lock = tmp_path / "jgo.lock.toml"
    lock.write_text(
        '[[dependencies]]\ngroupId = "org.example"\nartifactId = "alpha"\nversion = "1.0"\npackaging = "jar"\n'
        f'sha256 = "{hashlib.sha256(JAR).hexdigest()}"\n'
    )
    return lock


def test_the_jars_lie_in_the_folder(single: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    result = CliRunner().invoke(main, [str(single), str(folder)])
    assert result.exit_code == 0
    assert result.output == f"{folder}: 1 jars\n"
    assert [(jar.name, jar.read_bytes()) for jar in folder.iterdir()] == [("alpha-1.0.jar", JAR)]


def test_another_jar_than_the_locked_one_ends_the_build(single: Path, tmp_path: Path) -> None:
    single.write_text(single.read_text().replace('sha256 = "', 'sha256 = "0'))
    result = CliRunner().invoke(main, [str(single), str(tmp_path / "jars")])
    assert result.exit_code == 1
    assert "alpha-1.0.jar is not the jar that was locked" in result.output
    assert not (tmp_path / "jars").exists()
