"""Unpacking no more than may be unpacked: what a wheel holds shows only when it is unpacked."""

import resource
from collections.abc import Generator
from contextlib import contextmanager

from pyexec.environments.failures import PreparationFailure
from pyexec.environments.tool import ToolError

_SIGNAL = "SIGXFSZ"
# What is downloaded before it is unpacked is written twice.
_FACTOR = 2
_MORE = 64 * 1024 * 1024


class Excess:
    """Watches how much a process writes, and ends it when that is too much."""

    def __init__(self, most: int) -> None:
        self._most = most * _FACTOR + _MORE
        self._pid: int | None = None
        self._found = False

    def watch(self, pid: int) -> None:
        """Watch that process from now on."""
        self._pid = pid

    def look(self) -> None:
        """Look how much it has written.

        Raises:
            ToolError: It is too much.
        """
        if self._pid is not None and _written(self._pid) > self._most:
            self._found = True
            raise ToolError(PreparationFailure(kind="other", message="too large", detail="too large"))

    def was_too_large(self, message: str) -> bool:
        """Tell whether that is why it failed, or that one file was larger than a file may be."""
        return self._found or _SIGNAL in message


@contextmanager
def file_size_limited(most: int) -> Generator[None]:
    """Limit how large a file may be that this process or one that it starts meanwhile writes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    hard = before[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _written(pid: int) -> int:
    """Return how many bytes a process has written; 0 where that is not told."""
    try:
        with open(f"/proc/{pid}/io", "rb") as file:
            for line in file:
                name, _colon, value = line.partition(b":")
                if name == b"wchar":
                    return int(value)
    except (OSError, ValueError):
        return 0
    return 0
