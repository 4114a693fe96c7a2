"""What the checkpoint of the stack's filter knows, for programs on this machine: it lies in a volume."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from docker.errors import APIError, NotFound
from docker.models.containers import Container
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_fixed

from fraud_filter.audit.gaps import Recorded, read_recorded
from fraud_filter.compose.stack import FILTER, Stack
from fraud_filter.config import Settings, env_name
from fraud_filter.errors import UsageError

#: Which rules decided and what was lost, and up to where is committed; not the state, which is large.
_PARTS = ("fraud-filter", "offsets", "commits")
_PLACE = "/var/lib/fraud-filter/checkpoint"


@contextmanager
def copied_checkpoint(stack: Stack) -> Iterator[Path]:
    """A copy of the parts that an audit reads, for as long as the block runs.

    Raises:
        UsageError: the stack has no filter.
    """
    containers = [state.container for state in stack.states() if state.service == FILTER]
    if not containers:
        raise UsageError(f"{stack.name} has no filter: `fraud-filter up` makes it")
    place = stack.values.get(env_name("checkpoint")) or _PLACE
    with TemporaryDirectory(prefix="fraud-filter-checkpoint-") as folder:
        for part in _PARTS:
            with suppress(NotFound):  # a filter that has committed nothing yet
                _copy(containers[0], f"{place.removeprefix('file:')}/{part}", Path(folder))
        yield Path(folder)


def recorded_by(stack: Stack, settings: Settings) -> Recorded | None:
    """What the checkpoint tells an audit, such as which rules decided from where on; `settings` are the stack's.

    Raises:
        UsageError: the stack has no filter, or no broker answers.
        FraudFilterError: Java does not start, or the copy can't be read.
    """
    with copied_checkpoint(stack) as copy:
        return read_recorded(settings.model_copy(update={"checkpoint": str(copy)}))


# A file that the filter removes meanwhile ends the copy.
@retry(retry=retry_if_exception_type((APIError, tarfile.ReadError)), stop=stop_after_attempt(5), wait=wait_fixed(0.2),
       reraise=True)  # fmt: skip
def _copy(container: Container, path: str, folder: Path) -> None:
    chunks, _ = container.get_archive(path)
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
        archive.extractall(folder, filter="data")
