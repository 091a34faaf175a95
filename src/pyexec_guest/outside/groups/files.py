"""Control groups are folders, and what is known of them are small files."""

import fcntl
import os
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress

REMOVE_SECONDS = 2.0
ABANDONED_SECONDS = 60.0
PREFIX = "pyexec-"
"""What the folders of owners are called, before the owner's key."""

_GULP_BYTES = 65536
_PAGE_BYTES = 2048
_NUMBER_BYTES = 64
_FIELDS_BYTES = 4096
_FIRST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.02


def write(folder: str, name: str, value: "int | str") -> None:
    """Write a value.

    Raises:
        OSError: The kernel refuses.
    """
    fd = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, str(value).encode("ascii"))
    finally:
        os.close(fd)


def read(folder: str, name: str) -> str:
    """Return what a file says, without the end of its line.

    Raises:
        OSError: It cannot be read.
    """
    fd = os.open(f"{folder}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = os.read(fd, _GULP_BYTES)
        # The kernel hands out a page or so at a time; less than that is all there is.
        while len(text) >= _PAGE_BYTES and (more := os.read(fd, _GULP_BYTES)):
            text += more
    finally:
        os.close(fd)
    return text.decode("ascii").rstrip("\n")


class Kept:
    """Files that are looked at again and again, which stay open until `close`. May be used from several threads.

    Args:
        folder: Where they are.
    """

    def __init__(self, folder: "str | None") -> None:
        self._folder = folder
        self._open: dict[str, int] = {}
        self._lock = threading.Lock()

    def number(self, name: str) -> int:
        """Return the number that a file says; 0 where there is no folder."""
        return int(self._read(name, _NUMBER_BYTES) or 0)

    def fields(self, name: str, *keys: bytes) -> "tuple[int, ...]":
        """Return numbers of a file with a name and a number in each line, 0 for those that it has not.

        It is at most a page long.
        """
        words = self._read(name, _FIELDS_BYTES).split()
        found = dict(zip(words[::2], words[1::2], strict=False))
        return tuple(int(found.get(key, 0)) for key in keys)

    def write(self, name: str, value: int) -> None:
        """Write a number, to a file that is not read from here; nowhere where there is no folder.

        Raises:
            OSError: The kernel refuses.
        """
        with self._lock:
            if self._folder is not None:
                os.pwrite(self._opened(self._folder, name, os.O_WRONLY), str(value).encode("ascii"), 0)

    def close(self) -> None:
        """Let go of all; none is opened any more."""
        with self._lock:
            self._folder = None
            for fd in self._open.values():
                os.close(fd)
            self._open.clear()

    def _read(self, name: str, most: int) -> bytes:
        with self._lock:
            return b"" if self._folder is None else os.pread(self._opened(self._folder, name, os.O_RDONLY), most, 0)

    def _opened(self, folder: str, name: str, how: int) -> int:
        fd = self._open.get(name)
        if fd is None:
            fd = self._open[name] = os.open(f"{folder}/{name}", how | os.O_CLOEXEC)
        return fd


def number(folder: str, name: str) -> int:
    """Return the number that a file says."""
    return int(read(folder, name))


def fields(folder: str, name: str) -> "dict[str, int]":
    """Return the numbers of a file with a name and a number in each line."""
    return _numbers_in(read(folder, name))


def _numbers_in(text: str) -> "dict[str, int]":
    return {key: int(value) for key, _, value in (line.partition(" ") for line in text.splitlines())}


def members(folder: str) -> "list[int]":
    """Return the processes in a group, by their pids; none when it is gone."""
    try:
        return [int(line) for line in read(folder, "cgroup.procs").split()]
    except OSError:
        return []


def open_entrance(folder: str) -> int:
    """Return a descriptor by which a process enters."""
    return os.open(os.path.join(folder, "cgroup.procs"), os.O_WRONLY | os.O_CLOEXEC)


def remove(folder: str, deadline: float) -> bool:
    """Remove a group once it is empty; tell whether it is gone. Blocks until the deadline (`time.monotonic`)."""
    pause = _FIRST_PAUSE
    while True:
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            return True
        except OSError:
            if time.monotonic() > deadline:
                return False
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        else:
            return True


def remove_abandoned(parents: "Iterable[str]") -> None:
    """Remove empty groups that have been left by an owner which is gone."""
    for parent in parents:
        for entry in os.scandir(parent):
            with suppress(OSError):
                if entry.is_dir() and time.time() - entry.stat().st_mtime > ABANDONED_SECONDS:
                    os.rmdir(entry.path)


def promised(parent: str, name: str) -> "Iterator[int]":
    """Return the limits of all groups below this one, as a file in each says them."""
    for entry in os.scandir(parent):
        if entry.is_dir():
            with suppress(OSError, ValueError):  # It is being removed, or is not of our making.
                yield number(entry.path, name)


@contextmanager
def locked(folder: str) -> "Generator[None, None, None]":
    """Keep other owners of this folder out meanwhile."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
