"""Locks that are really held, as a keeper holds that of its execution."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def holding(lock: Path, kind: int = fcntl.LOCK_EX) -> Generator[Path]:
    """Hold the lock of a file, which is made if need be."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, kind)
        yield lock
    finally:
        os.close(fd)
