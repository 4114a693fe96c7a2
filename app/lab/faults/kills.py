"""Faults that kill processes, or stop them, from within their container: Docker then restarts what it is told to."""

from __future__ import annotations

from collections.abc import Callable

from lab.faults.effect import Effect
from lab.harness.compose_stack import ComposeStack

#: Signals the Java processes whose command line has the word; fails when there is none.
_SIGNAL_JAVA = """
found=1
for process in /proc/[0-9]*; do
    if [ "$(cat "$process/comm" 2>/dev/null)" = java ] && grep -qs "$1" "$process/cmdline"; then
        kill "-$2" "${process#/proc/}" && found=0
    fi
done
exit $found
"""
#: All but the init process, which ends when its child does, and this shell.
_KILL_ALL = "kill -9 -1; true"
#: Other processes notice the death of a connection at once; this is much more.
_GRACE_S = 2.0


def kill_java(service: str, word: str, signal: str = "KILL") -> Callable[[ComposeStack], Effect]:
    """Kills the Java process of a service's container that has `word` in its command line, or stops it with `STOP`."""

    def inject(stage: ComposeStack) -> Effect:
        effect = Effect(grace_s=_GRACE_S)
        stage.execute(service, _SIGNAL_JAVA, word, signal)
        return effect

    return inject


def kill_containers(*services: str) -> Callable[[ComposeStack], Effect]:
    """Kills all processes of the services' containers."""

    def inject(stage: ComposeStack) -> Effect:
        effect = Effect(grace_s=_GRACE_S)
        for service in services:
            stage.container(service).exec_run(["sh", "-c", _KILL_ALL])  # its own exit code goes with the container
        return effect

    return inject
