"""Hosts of a network of their own on this machine: network namespaces on one bridge, which can be cut off."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.harness.processes import Child

#: What it takes beside root: Debian's packages iproute2, iptables and bindfs.
PROGRAMS = ("ip", "iptables", "bindfs", "fusermount")
_BRIDGE, _NETWORK = "fraud-hosts", "10.213.77"


def missing() -> str:
    """Why there can be no hosts here; "" where there can."""
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    absent = [name for name in PROGRAMS if not shutil.which(name)]
    return f"not installed: {', '.join(absent)}" if absent else ""


def _call(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


@dataclass(frozen=True)
class Host:
    """A namespace with an address; this machine itself is at `.1` of the same network."""

    name: str
    address: str

    def run(self, program: Child) -> Child:
        """The program, not yet started, is started on this host."""
        program._argv[:0] = ["ip", "netns", "exec", self._namespace]
        return program

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        """Within it nothing gets to the host or away from it."""
        _call("ip", "link", "set", self._link, "down")
        try:
            yield
        finally:
            _call("ip", "link", "set", self._link, "up")

    def let_in(self, *ports: int) -> None:
        """From now on its firewall lets others connect to these ports alone."""
        inside = ("ip", "netns", "exec", self._namespace, "iptables", "--append", "INPUT")
        _call(*inside, "--in-interface", "lo", "--jump", "ACCEPT")
        _call(*inside, "--match", "conntrack", "--ctstate", "ESTABLISHED,RELATED", "--jump", "ACCEPT")
        for port in ports:
            _call(*inside, "--protocol", "tcp", "--dport", str(port), "--jump", "ACCEPT")
        _call(*inside, "--jump", "DROP")

    @property
    def _namespace(self) -> str:
        return f"{_BRIDGE}-{self.name}"

    @property
    def _link(self) -> str:
        return f"fh-{self.name}"


#: This machine's own address among them.
HERE = f"{_NETWORK}.1"


@contextmanager
def open_hosts(*names: str) -> Iterator[list[Host]]:
    """Hosts of these short names, and the bridge between them; all is removed at the end."""
    with ExitStack() as made:
        _call("ip", "link", "add", "name", _BRIDGE, "type", "bridge")
        made.callback(_call, "ip", "link", "delete", _BRIDGE)
        _call("ip", "address", "add", f"{HERE}/24", "dev", _BRIDGE)
        _call("ip", "link", "set", _BRIDGE, "up")
        # Docker forwards nothing that it does not know.
        among = ("FORWARD", "--in-interface", _BRIDGE, "--out-interface", _BRIDGE, "--jump", "ACCEPT")
        _call("iptables", "--insert", *among)
        made.callback(_call, "iptables", "--delete", *among)
        hosts = [Host(name, f"{_NETWORK}.{number}") for number, name in enumerate(names, 2)]
        for host in hosts:
            space = host._namespace
            _call("ip", "netns", "add", space)
            made.callback(_call, "ip", "netns", "delete", space)
            _call("ip", "link", "add", host._link, "type", "veth", "peer", "name", "eth0", "netns", space)
            _call("ip", "link", "set", host._link, "master", _BRIDGE, "up")
            for words in (f"address add {host.address}/24 dev eth0", "link set eth0 up", "link set lo up"):
                _call("ip", "-n", space, *words.split())
        yield hosts


@contextmanager
def shared_folder(at: Path, behind: Path) -> Iterator[None]:
    """A folder that lies on a file system which many machines may share (FUSE), for the filter as for the kernel."""
    for path in (at, behind):
        path.mkdir(parents=True, exist_ok=True)
    _call("bindfs", str(behind), str(at))
    try:
        yield
    finally:
        _call("fusermount", "-u", "-z", str(at))
