"""What the images are made of: nothing but what the locks name, refused at the build when it is something else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from jgo.env import LockFile

from deployed import make_env
from fraud_filter.compose import images
from fraud_filter.compose.stack import Stack
from fraud_filter.home import HOME
from tools import sbom

#: Not asked for by name: jgo needs it.
BROUGHT_ALONG = "tomli-w"


#: Are ML's functions known in a new session, and after the filter has made them so?
ASK_FOR_ML = """
from pyspark.sql import SparkSession
from fraud_filter.model.scoring import register_functions
jvm = SparkSession.builder.master("local[1]").getOrCreate()._jvm
catalyst = jvm.org.apache.spark.sql.catalyst
functions = getattr(getattr(catalyst.analysis, "FunctionRegistry$"), "MODULE$").internal()
known = lambda: functions.functionExists(catalyst.FunctionIdentifier("vector_to_array"))
print(known(), register_functions(jvm), known())
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    """A stack with its images, which does not run."""
    stack = Stack.open(make_env(tmp_path_factory.mktemp("supply-chain") / ".env"))
    stack.profiles.clear()
    images.prepare(stack)
    return stack


@pytest.fixture
def context(tmp_path: Path) -> Path:
    """What the broker's image is built from, as a copy."""
    for path in (".dockerignore", "requirements.lock", "app/locked", "app/jarcopy.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        shutil.copy(HOME / path, tmp_path / path)
    for path in ("app/fraud_filter", "kafka", "monitoring/jmx"):
        shutil.copytree(HOME / path, tmp_path / path, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def build(stack: Stack, context: Path) -> subprocess.CompletedProcess[str]:
    """Builds the stage that fetches the jars."""
    base = f"BASE_IMAGE={images.base_image(stack)}"
    words = ("--progress", "plain", "--target", "jars", "--build-arg", base, "--file", context / "kafka/Dockerfile")
    return subprocess.run(["docker", "build", *words, context], capture_output=True, text=True, check=False)


def change_lock(context: Path, entry: str, replacement: str) -> None:
    lock = context / "requirements.lock"
    changed, count = re.subn(entry, replacement, lock.read_text(), flags=re.MULTILINE)
    assert count == 1
    lock.write_text(changed)


def test_package_that_is_not_locked_is_refused(built: Stack, context: Path) -> None:
    change_lock(context, rf"^{BROUGHT_ALONG}==.*(?:\n +.*)+\n", "")
    done = build(built, context)
    assert done.returncode != 0
    assert f"no trusted hash was provided for: `{BROUGHT_ALONG}`" in done.stderr


def test_package_with_another_hash_is_refused(built: Stack, context: Path) -> None:
    change_lock(context, rf"(^{BROUGHT_ALONG}==\S+ \\)(?:\n +--hash.*)+", rf"\1\n    --hash=sha256:{'0' * 64}")
    done = build(built, context)
    assert done.returncode != 0
    assert re.search(rf"[Hh]ash mismatch for `{BROUGHT_ALONG}==", done.stderr), done.stderr[-2000:]


@pytest.fixture(scope="module")
def bills(built: Stack) -> dict[str, dict[str, Any]]:
    """The bill of each image, by its service's name, in CycloneDX's form."""
    found = {}
    for image in sbom.our_images():
        text = sbom.as_json(sbom.bill_of_image(built.client, image))
        assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
        found[image.removeprefix("fraud-filter-").removesuffix(":local")] = json.loads(text)
    return found


def purls(bill: dict[str, Any], kind: str) -> set[str]:
    """Of all packages but those that were copied into another one (setuptools has such)."""
    named = {part["purl"] for part in bill["components"] if "purl" in part and "/_vendor/" not in part["bom-ref"]}
    return {purl for purl in named if purl.startswith(f"pkg:{kind}/")}


#: The builds themselves refuse what is not locked (above, and `tests/unit/java/test_jars.py`).
repeats = pytest.mark.exhaustive


@repeats
def test_the_broker_s_jars_are_those_of_the_locks(bills: dict[str, dict[str, Any]]) -> None:
    locked = [
        jar
        for folder in ("kafka", "monitoring/jmx")
        for jar in LockFile.load(HOME / folder / "jgo.lock.toml").dependencies
    ]
    jars = [part for part in bills["kafka"]["components"] if part["bom-ref"].endswith(".jar")]
    assert {part["hashes"][0]["content"] for part in jars if not part["bom-ref"].startswith("usr/")} == {
        jar.sha256 for jar in locked
    }
    assert {f"pkg:maven/{jar.groupId}/{jar.artifactId}@{jar.version}" for jar in locked} <= purls(
        bills["kafka"], "maven"
    )


@repeats
def test_python_packages_are_those_of_the_lock(bills: dict[str, dict[str, Any]]) -> None:
    locked = re.findall(r"^([a-z0-9-]+)==(\S+)", (HOME / "requirements.lock").read_text(), re.MULTILINE)
    versions = {f"pkg:pypi/{name}@{version}" for name, version in locked}
    for service, least in (("spark", 2), ("app", 30), ("kafka", 0), ("prometheus", 0)):
        found = purls(bills[service], "pypi")
        assert found <= versions
        assert len(found) >= least


@repeats
def test_every_image_names_debian_s_packages(bills: dict[str, dict[str, Any]]) -> None:
    for bill in bills.values():
        assert len(purls(bill, "deb")) > 50
    assert any("prometheus@2.53" in purl for purl in purls(bills["prometheus"], "deb"))


@pytest.mark.usefixtures("built")
def test_sessions_of_the_image_leave_out_ml_s_functions_and_models_have_them() -> None:
    options = ("--network", "none", "--env", "SPARK_LOCAL_IP=127.0.0.1", "--env", "PYSPARK_SUBMIT_ARGS=pyspark-shell")
    words = ("docker", "run", "--rm", *options, "--entrypoint", "python", "fraud-filter-app:local", "-c", ASK_FOR_ML)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["False None True"], done.stderr
