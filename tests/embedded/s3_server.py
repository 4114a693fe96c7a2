"""A real server that speaks S3, on this machine, from a locked jar; each request may take longer, as far away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import requests
from jgo.env import LockFile

from fraud_filter.home import HOME
from fraud_filter.java.jars import resolve_jars
from lab.harness.processes import Child, free_ports
from running import Server

_LOCK, _CLIENT = Path(__file__).parent / "s3/jgo.lock.toml", HOME / "spark/s3/jgo.lock.toml"
_JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_BUCKET = "checkpoints"
_ENVIRONMENT = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")


class S3(Server):
    """`with S3(...) as s3` gives one that answers, with a bucket at `s3.uri`."""

    uri = f"s3a://{_BUCKET}"
    #: What Amazon's client asks for; the server takes every user.
    environment: ClassVar[dict[str, str]] = dict.fromkeys(_ENVIRONMENT, "any")

    def __init__(self, directory: Path, java_home: Path, latency_ms: int = 0) -> None:
        """`directory` is its own; each request waits `latency_ms` before it is answered."""
        (directory / "data" / _BUCKET).mkdir(parents=True)
        self._endpoint = f"http://127.0.0.1:{free_ports(1)[0]}"
        properties = {
            "s3proxy.endpoint": self._endpoint,
            "s3proxy.authorization": "none",
            "s3proxy.latency-blobstore.*.latency": latency_ms,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": directory / "data",
        }
        resolve_jars(_CLIENT)
        file = directory / "s3proxy.conf"
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        main = ("-cp", resolve_jars(_LOCK)[0], "org.gaul.s3proxy.Main", "--properties", file)
        super().__init__(Child("S3", list(map(str, (java_home / "bin/java", *_JVM, *main))), log=directory / "s3.log"))

    @property
    def spark_conf(self) -> str:
        """For FRAUD_SPARK_CONF."""
        own = {"endpoint": self._endpoint, "path.style.access": "true"}
        conf = {f"spark.hadoop.fs.s3a.{name}": value for name, value in own.items()}
        # From the local repository, where resolve_jars has put them: not once more from Maven Central.
        jars = LockFile.load(_CLIENT).dependencies
        packages = ",".join(f"{jar.groupId}:{jar.artifactId}:{jar.version}" for jar in jars)
        return json.dumps({"spark.jars.packages": packages, **conf})

    def put(self, folder: Path, name: str) -> None:
        """A folder's files, as objects."""
        for path in filter(Path.is_file, folder.rglob("*")):
            url = f"{self._endpoint}/{_BUCKET}/{name}/{path.relative_to(folder)}"
            requests.put(url, path.read_bytes(), timeout=30).raise_for_status()

    def is_up(self) -> bool:
        try:
            return requests.get(self._endpoint, timeout=5).status_code == 200
        except requests.ConnectionError:
            return False
