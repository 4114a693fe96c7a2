"""Puts the jars of a lock into a folder, verified. The images are built with it.

Run as `python app/jarcopy.py LOCK FOLDER`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from fraud_filter.errors import FraudFilterError
from fraud_filter.java.jars import resolve_jars


@click.command()
@click.argument("lock", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def main(lock: Path, folder: Path) -> None:
    """Copy the jars of LOCK, in its order, into FOLDER, which is made if missing."""
    try:
        jars = resolve_jars(lock)
    except FraudFilterError as error:
        raise click.ClickException(str(error)) from None
    folder.mkdir(parents=True, exist_ok=True)
    for jar in jars:
        shutil.copyfile(jar, folder / jar.name)
    click.echo(f"{folder}: {len(jars)} jars")


if __name__ == "__main__":
    main()
