"""A real Spark standalone cluster on this machine."""

from __future__ import annotations

from pathlib import Path

import pyspark

from lab.harness.processes import Child, free_ports
from running import Server

#: Environment of its programs.
DAEMONS = {
    "SPARK_NO_DAEMONIZE": "1",
    # It would take programs of everybody on this machine.
    "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
}


class Cluster(Server):
    """`with Cluster(...) as cluster` gives a master, and a worker that can be started, leave and come back."""

    def __init__(self, directory: Path, host: str = "127.0.0.1", cores: int = 4) -> None:
        """`directory` is its own, `host` the address of the master and of workers that have no other."""
        self._directory, self._host, self._cores = directory, host, cores
        (self._port,) = free_ports(1)
        self.url = f"spark://{host}:{self._port}"
        super().__init__(self._child("master.Master", host, "--port", str(self._port), "--webui-port", "0"))
        self.worker = self.new_worker()

    def new_worker(self, *prefix: str, host: str = "") -> Child:
        work = ("--cores", str(self._cores), "--memory", f"{self._cores * 256}m", "--webui-port", "0")
        place = ("--work-dir", str(self._directory / "work"))
        self.worker = self._child("worker.Worker", host or self._host, *work, *place, self.url, prefix=prefix)
        return self.worker

    def _child(self, name: str, host: str, *words: str, prefix: tuple[str, ...] = ()) -> Child:
        program = Path(pyspark.__file__).parent / "bin/spark-class"
        argv = [*prefix, program, f"org.apache.spark.deploy.{name}", "--host", host, *words]
        env = DAEMONS | {"SPARK_LOCAL_IP": host}
        return Child(name, [str(word) for word in argv], log=self._directory / f"{name}.log", env=env)

    def is_up(self) -> bool:
        """Whether the master is one that workers can come to."""
        return "I have been elected leader" in "\n".join(self.child.tail(50))

    def __exit__(self, *error: object) -> None:
        self.worker.stop()
        super().__exit__(*error)
