"""Puts the jars of a lock into a folder, verified. The images are built with it.

Run as `python -m fraud_filter.java.jarcopy LOCK FOLDER`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from fraud_filter.errors import FraudFilterError
from fraud_filter.java.jars import resolve_jars


def copy_jars(lock: Path, folder: Path) -> list[Path]:
    """Copies each jar of `lock` into `folder` (made if missing) and returns the copies, in the lock's order.

    Raises:
        FraudFilterError: the lock can't be read, a jar can't be fetched, or its SHA-256 differs.
    """
    jars = resolve_jars(lock)
    folder.mkdir(parents=True, exist_ok=True)
    return [Path(shutil.copyfile(jar, folder / jar.name)) for jar in jars]


@click.command()
@click.argument("lock", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def main(lock: Path, folder: Path) -> None:
    """Copy the jars of LOCK into FOLDER."""
    try:
        click.echo(f"{folder}: {len(copy_jars(lock, folder))} jars")
    except FraudFilterError as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    main()
