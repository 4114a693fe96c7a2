"""The bill of materials of a file system made here: what it names, and that it keeps to CycloneDX's schema."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tools import sbom

STATUS = """Package: libssl3t64
Status: install ok installed
Architecture: amd64
Source: openssl (3.5.1-1)
Version: 3.5.1-1+deb13u1
Description: a library
 with a second line

Package: removed
Status: deinstall ok config-files
Architecture: all
Version: 1
"""


def jar(*poms: tuple[str, str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for group, artifact, version in poms:
            text = f"#Generated\r\ngroupId={group}\r\nartifactId={artifact}\r\nversion={version}\r\n"
            archive.writestr(f"META-INF/maven/{group}/{artifact}/pom.properties", text)
    return content.getvalue()


LOCKED = jar()
FILES = {
    "var/lib/dpkg/status": STATUS.encode(),
    "opt/python/lib/python3.13/site-packages/rich-15.0.0.dist-info/METADATA": b"Name: rich\nVersion: 15.0.0\n\ntext",
    "opt/python/lib/python3.13/site-packages/fraud_filter-1.dist-info/METADATA": b"Name: fraud-filter\nVersion: 1\n",
    "usr/lib/python3/dist-packages/six-1.dist-info/METADATA": b"Name: six\nVersion: 1\n",
    "opt/kafka/libs/locked-2.0.jar": LOCKED,
    "opt/spark/jars/fat-3.1.jar": jar(("org.example", "fat", "3.1"), ("com.google.guava", "guava", "27.0-jre")),
    "opt/spark/jars/renamed.jar": jar(("org.slf4j", "slf4j-api", "2.0.18")),
    "opt/spark/jars/snappy-java-1.1.10.8.jar": jar() + b"\n",
}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    lock = tmp_path / "jgo.lock.toml"
    lock.write_text(
        '[[dependencies]]\ngroupId = "org.example"\nartifactId = "locked"\nversion = "2.0"\npackaging = "jar"\n'
        f'sha256 = "{hashlib.sha256(LOCKED).hexdigest()}"\n'
    )
    monkeypatch.setattr(sbom, "_JAR_LOCKS", (lock,))
    sbom._locked.cache_clear()
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, file in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(file)
            archive.addfile(member, io.BytesIO(file))
    content.seek(0)
    text = sbom.as_json(sbom.bill("an-image", "sha256:1", content))
    sbom._locked.cache_clear()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    return dict(json.loads(text))


def test_every_package_is_named_by_its_purl(made: dict[str, Any]) -> None:
    assert {component.get("purl", component["name"]) for component in made["components"]} == {
        "pkg:deb/debian/libssl3t64@3.5.1-1%2Bdeb13u1?arch=amd64&distro=trixie&upstream=openssl",
        "pkg:pypi/rich@15.0.0",
        "fraud-filter",
        "pkg:maven/org.example/locked@2.0",
        "pkg:maven/org.example/fat@3.1",
        "pkg:maven/org.slf4j/slf4j-api@2.0.18",
        "snappy-java",
    }
    assert made["metadata"]["component"]["name"] == "an-image"


def test_jars_have_their_hash_and_what_lies_inside(made: dict[str, Any]) -> None:
    jars = {part["bom-ref"]: part for part in made["components"] if part["bom-ref"].endswith(".jar")}
    for path, part in jars.items():
        assert part["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(FILES[path]).hexdigest()}]
    [guava] = jars["opt/spark/jars/fat-3.1.jar"]["components"]
    assert guava["purl"] == "pkg:maven/com.google.guava/guava@27.0-jre"
    assert jars["opt/spark/jars/snappy-java-1.1.10.8.jar"]["version"] == "1.1.10.8"


def test_our_images_are_those_that_compose_builds() -> None:
    names = ("alertmanager", "app", "kafka", "prometheus", "spark")
    assert sbom.our_images() == [f"fraud-filter-{name}:local" for name in names]
