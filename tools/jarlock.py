"""Writes the jar locks: resolves `jgo.toml` into `jgo.lock.toml`, each jar with version and SHA-256.

Run by `make lock` as `python tools/jarlock.py FOLDER...`; needs the network.
"""

from __future__ import annotations

from pathlib import Path

import click
from jgo.env import EnvironmentBuilder, EnvironmentSpec, LockFile, compute_spec_hash

from fraud_filter.java.jars import LOCK_NAME, SPEC_NAME, maven_context


def write_lock(folder: Path) -> LockFile:
    """Resolves the folder's specification, downloads each jar for its SHA-256, and writes the lock beside it.

    An unchanged result leaves the file alone, so that a run without news makes no difference to commit.
    """
    spec_path, lock_path = folder / SPEC_NAME, folder / LOCK_NAME
    spec = EnvironmentSpec.load(spec_path)
    context = maven_context()
    named, brought_along = context.resolver.resolve(EnvironmentBuilder(context).spec_to_dependencies(spec))
    lock = LockFile.from_resolved_dependencies(
        sorted(named + brought_along, key=str),
        environment_name=spec.name,
        java_version=spec.java_version,
        spec_hash=compute_spec_hash(spec_path),
    )
    if not lock_path.exists() or _without_date(LockFile.load(lock_path)) != _without_date(lock):
        lock.save(lock_path)
    return lock


def _without_date(lock: LockFile) -> tuple[object, ...]:
    return lock.spec_hash, [jar.to_dict() for jar in lock.dependencies]


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folders: tuple[Path, ...]) -> None:
    """Write jgo.lock.toml from jgo.toml in each of FOLDERS."""
    for folder in folders:
        click.echo(f"{folder / LOCK_NAME}: {len(write_lock(folder).dependencies)} jars")


if __name__ == "__main__":
    main()
