"""Bills of materials: what each image of ours holds, as CycloneDX 1.6 in JSON.

Debian's packages are those of dpkg's status file, Python's those with a `.dist-info`, jars all files of that kind; jars
inside jars are named by the `pom.properties` that they left. An image's files are read; nothing of it is run.
Run by `make sbom`.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from email import message_from_string
from functools import cache
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO

import click
import yaml
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from docker import DockerClient
from docker.errors import ImageNotFound
from jgo.env import LockFile
from packageurl import PackageURL

from fraud_filter.compose import env_file
from fraud_filter.compose.stack import connect
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.home import HOME
from fraud_filter.java.jars import LOCK_NAME

_DPKG = "var/lib/dpkg/status"
#: A dist-info that no Debian package brought.
_METADATA = re.compile(r"^(?!usr/lib/).*\.dist-info/METADATA$")
_FILE_VERSION = re.compile(r"^(.+?)-(\d.*)$")
_JAR_LOCKS = tuple(HOME / folder / LOCK_NAME for folder in ("kafka", "monitoring/jmx", "spark"))


def bill(name: str, version: str, files: IO[bytes]) -> Bom:
    """The bill of an image of this name and version, from `files`, a tar archive of its file system."""
    image = Component(type=ComponentType.CONTAINER, name=name, version=version, bom_ref=name)
    made = Bom(components=_components(files), metadata=BomMetaData(component=image))
    made.register_dependency(image, made.components)
    return made


def bill_of_image(client: DockerClient, image: str) -> Bom:
    """The bill of an image that the engine has; its version is the image's ID.

    Raises:
        UsageError: the engine has no such image.
        FraudFilterError: the image could not be read to its end.
    """
    try:
        container = client.containers.create(image)
    except ImageNotFound:
        raise UsageError(f"there is no image {image}: build it first, `make up` does") from None
    try:
        with subprocess.Popen(["docker", "export", str(container.id)], stdout=subprocess.PIPE) as export:
            assert export.stdout is not None  # noqa: S101 - it is a pipe
            made = bill(image.partition(":")[0], str(container.image.id), export.stdout)
        if export.returncode:
            raise FraudFilterError(f"the files of {image} can't be read: docker export ended with {export.returncode}")
    finally:
        container.remove()
    return made


def _components(files: IO[bytes]) -> Iterator[Component]:
    with tarfile.open(fileobj=files, mode="r|") as archive:
        for member in archive:
            wanted = member.name == _DPKG or member.name.endswith(".jar") or _METADATA.match(member.name)
            content = archive.extractfile(member) if wanted and member.isfile() else None
            if content is None:
                continue
            if member.name == _DPKG:
                yield from _debian_packages(content.read().decode())
            elif member.name.endswith(".jar"):
                yield _jar(member.name, content.read())
            else:
                yield _python_package(member.name, content.read().decode())


def _component(purl: PackageURL, ref: str = "") -> Component:
    return Component(
        name=purl.name, version=purl.version, group=purl.namespace, purl=purl, bom_ref=ref or purl.to_string()
    )


def _debian_packages(status: str) -> Iterator[Component]:
    for paragraph in filter(str.strip, status.split("\n\n")):
        fields = message_from_string(paragraph)
        if not fields["Status"].endswith(" installed"):
            continue
        details = {"arch": fields["Architecture"], "distro": "trixie"}
        if fields["Source"]:
            details["upstream"] = fields["Source"].split()[0]
        yield _component(PackageURL("deb", "debian", fields["Package"], fields["Version"], details))


def _python_package(path: str, metadata: str) -> Component:
    fields = message_from_string(metadata)
    if fields["Name"] == "fraud-filter":  # ours, which is in no registry
        return Component(type=ComponentType.APPLICATION, name=fields["Name"], version=fields["Version"])
    return _component(PackageURL("pypi", None, fields["Name"], fields["Version"]), path)


def _jar(path: str, content: bytes) -> Component:
    """Named by the lock that it came with, else by what it says of itself, else by its file."""
    digest = hashlib.sha256(content).hexdigest()
    file = PurePosixPath(path)
    inside = list(_poms(content))
    own = _locked().get(digest) or next((purl for purl in inside if file.name.startswith(f"{purl.name}-")), None)
    if own is None and len(inside) == 1:
        own = inside[0]
    name, _, version = _FILE_VERSION.sub(r"\1 \2", file.stem).partition(" ")
    component = _component(own, path) if own else Component(name=name, version=version or None, bom_ref=path)
    component.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=digest))
    shaded = sorted(purl.to_string() for purl in set(inside) - {own})
    component.components.update(_component(PackageURL.from_string(purl), f"{path}!{purl}") for purl in shaded)
    return component


def _poms(content: bytes) -> Iterator[PackageURL]:
    with zipfile.ZipFile(BytesIO(content)) as jar:
        for entry in jar.namelist():
            if re.fullmatch(r"META-INF/maven/.+/pom\.properties", entry):
                pairs = dict(re.findall(r"^(\w+)=(.+?)\s*$", jar.read(entry).decode(), re.MULTILINE))
                yield PackageURL("maven", pairs["groupId"], pairs["artifactId"], pairs["version"])


@cache
def _locked() -> dict[str, PackageURL]:
    jars = [jar for lock in _JAR_LOCKS for jar in LockFile.load(lock).dependencies]
    return {str(jar.sha256): PackageURL("maven", jar.groupId, jar.artifactId, jar.version) for jar in jars}


def as_json(bill: Bom) -> str:
    """A bill as CycloneDX 1.6."""
    return str(JsonV1Dot6(bill).output_as_string(indent=1))


def our_images() -> list[str]:
    """Names of the images that the Compose file builds."""
    services = yaml.safe_load(env_file.COMPOSE_FILE.read_text(encoding="utf-8"))["services"].values()
    return sorted({str(service["image"]) for service in services if "build" in service})


@click.command()
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), default=Path("sbom"), show_default=True)
def main(output: Path) -> None:
    """Write a CycloneDX bill of materials of each of our images."""
    output.mkdir(parents=True, exist_ok=True)
    try:
        client = connect()
        for image in our_images():
            made = bill_of_image(client, image)
            file = output / f"{image.partition(':')[0]}.cdx.json"
            file.write_text(as_json(made), encoding="utf-8")
            kinds = Counter(part.purl.type if part.purl else "other" for part in made.components)
            click.echo(f"{file}: {', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))}")
    except FraudFilterError as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    main()
