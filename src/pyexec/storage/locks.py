"""Locks between processes, by `flock` on files that may be removed while nobody holds them."""

import fcntl
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

LOOK_SECONDS = 0.05


@contextmanager
def held(path: Path, while_waiting: Callable[[bytes], None] | None = None) -> Generator[int]:
    """Hold a lock alone, waiting for it as long as it takes; yields its descriptor.

    Whoever holds it may write one line into the file, which those who wait are told again and again.
    """
    fd = _lock(path, fcntl.LOCK_EX, while_waiting)
    try:
        os.ftruncate(fd, 0)
        yield fd
    finally:
        os.close(fd)


@contextmanager
def try_hold(path: Path, *, shared: bool = False) -> Generator[bool]:
    """Hold a lock if it is free (`shared`: with others who share it); yields whether it was."""
    fd = _open_locked(path, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    try:
        yield fd is not None
    finally:
        if fd is not None:
            os.close(fd)


def _lock(path: Path, kind: int, while_waiting: Callable[[bytes], None] | None) -> int:
    while (fd := _open_locked(path, kind | fcntl.LOCK_NB)) is None:
        if while_waiting is not None:
            while_waiting(_first_line(path))
        time.sleep(LOOK_SECONDS)
    return fd


def _open_locked(path: Path, kind: int) -> int | None:
    """Open and lock the file that has this name now; None when somebody else holds it."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, kind)
            if _is_still(path, fd):
                return fd
        except BlockingIOError:
            os.close(fd)
            return None
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # It was removed by whoever held it before: the name means another file by now.


def _is_still(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except FileNotFoundError:
        return False


def _first_line(path: Path) -> bytes:
    try:
        return path.read_bytes()[:500].partition(b"\n")[0]
    except OSError:
        return b""
