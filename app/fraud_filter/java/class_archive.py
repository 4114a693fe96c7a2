"""The archive of Spark's classes that Java starts faster with (`spark/class_archive.py` writes it).

Java itself checks that the archive fits the Java and the jars in use, and does without where it does not.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from fraud_filter.home import HOME

_MAKER = HOME / "spark/class_archive.py"
#: In a Java's file `release`.
_TAKES_IT = b'JAVA_VERSION="17.'
#: Nobody needs to know that Java does without an archive; the option's own effect is what tells.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def java_options(archive: Path) -> str:
    """What makes Java use the archive, as options on its command line."""
    return f"-XX:SharedArchiveFile={archive} {_QUIET}"


def find() -> Path | None:
    """The archive for the Java that Spark would start with, beside Spark's jars; None when there is none."""
    home = os.environ.get("JAVA_HOME")
    java = home or shutil.which("java")
    if java is None:
        return None
    path = archive_of(Path(home) if home else Path(java).resolve().parents[1])
    return path if path and path.is_file() else None


def archive_of(java_home: Path) -> Path | None:
    """Where it belongs, beside Spark's jars; None for a Java that would not take it.

    Named after the Java and after what writes it, so that another one of these gets another.
    Java 21 refuses an archive when a jar stands twice on the class path, as slf4j's does by Spark's launcher. In the
    images it is renamed, in somebody's virtual environment it is not.
    """
    import pyspark

    try:
        release, maker = java_home.joinpath("release").read_bytes(), _MAKER.read_bytes()
    except OSError:
        return None
    if _TAKES_IT not in release:
        return None
    digest = hashlib.sha256(release + maker).hexdigest()
    return Path(pyspark.__file__).parent / f"classes-{digest[:12]}.jsa"
