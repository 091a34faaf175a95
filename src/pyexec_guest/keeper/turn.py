"""Waiting for one's turn: at most so many executions of one owner run at once, in the order of submission.

The queue is a folder with one entry per execution that waits or runs, named by its place in line. Each entry is a
hard link to the lock file of its execution, or of a keeper of many, so a lock that can be had means that the keeper is
gone and the entry does not count. Whoever ends wakes the next in line; a slow look around covers keepers that could
not.
"""

import fcntl
import os
import socket
import time
from bisect import bisect_left
from collections.abc import Callable
from contextlib import closing, suppress

from pyexec_guest import protocol
from pyexec_guest.keeper.places import connect_in

_ORDER = ".order"


class Queue:
    """The line that one execution stands in."""

    def __init__(self, folder: str, entry: "str | None", slots: int, join: "Callable[[str], str]") -> None:
        """`entry` is its place; None: `join` is told the folder and takes the last one, when it is first asked for."""
        self._folder = folder
        self._entry = entry
        self._slots = slots
        self._join = join

    def position(self) -> int:
        """Return about how many others must end before this one may run; 0 means go."""
        if self._entry is None:
            self._entry = self._join(self._folder)
        entries = _standing_in(self._folder)
        ahead = 0
        for entry in entries:
            if entry >= self._entry:
                break
            ahead += self._alive(entry)
            if ahead == self._slots:  # As many as may run: no need to ask the others who wait.
                return max(1, bisect_left(entries, self._entry) - self._slots + 1)
        return 0

    def leave(self) -> None:
        """Give up the place."""
        if self._entry is not None:
            leave_place(self._folder, self._entry)

    def next(self) -> "list[str]":
        """Return the ids of those who should look again when it has left."""
        return [] if self._entry is None else next_in_line(self._folder, self._slots)

    def _alive(self, entry: str) -> bool:
        path = os.path.join(self._folder, entry)
        if is_locked(path):
            return True
        with suppress(OSError):  # Somebody else may have cleared it away.
            os.unlink(path)
        return False


class LastPlace:
    """The end of a line, where nobody else can join until it has been taken, or let go of."""

    def __init__(self, folder: str, order: int) -> None:
        self._folder = folder
        self._order = order

    def take(self, lock: str, execution_id: str) -> str:
        """Stand an execution there, whose lock this is; return the name of its entry."""
        # The clock may step back; the line may not.
        last = int(os.pread(self._order, 32, 0) or b"0")
        number = max(time.time_ns(), last + 1)
        os.pwrite(self._order, f"{number:020d}".encode(), 0)
        entry = f"{number:020d}-{execution_id}"
        os.link(lock, os.path.join(self._folder, entry))
        return entry

    def close(self) -> None:
        """Let others join."""
        os.close(self._order)


def take_place(folder: str, lock: str, execution_id: str) -> str:
    """Stand an execution, whose lock this is, at the end of a line; return the name of its entry."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    order = os.open(os.path.join(folder, _ORDER), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with closing(LastPlace(folder, order)) as place:
        fcntl.flock(order, fcntl.LOCK_EX)
        return place.take(lock, execution_id)


def hold_place(folder: str, slots: int) -> "LastPlace | None":
    """Hold the end of a line if who stands there may run at once; None if not, or if somebody is just joining."""
    try:
        order = os.open(os.path.join(folder, _ORDER), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    place = LastPlace(folder, order)
    try:
        fcntl.flock(order, fcntl.LOCK_EX | fcntl.LOCK_NB)
        standing = sum(not name.startswith(".") for name in os.listdir(folder))
    except OSError:
        standing = slots
    if standing < slots:
        return place
    place.close()
    return None


def leave_place(folder: str, entry: str) -> None:
    """Give up a place in a line."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, entry))


def next_in_line(folder: str, slots: int) -> "list[str]":
    """Return the ids of those who should look again when somebody has left a line."""
    return [id_of(entry) for entry in _standing_in(folder)[slots - 1 : slots + 1]]


def _standing_in(folder: str) -> "list[str]":
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except FileNotFoundError:
        return []  # What it leads to has been removed, and the line with it.


def id_of(entry: str) -> str:
    """Return the execution id in the name of a queue entry."""
    return entry.partition("-")[2]


def is_locked(path: str) -> bool:
    """Tell whether somebody holds the lock file; a missing file is not held."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # Shared, so that two who ask at once do not take each other for a keeper.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def wake(executions: str, execution_id: str) -> None:
    """Tell another keeper to look at the queue now; it looks by itself a little later in any case."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        peer.settimeout(0.2)
        connect_in(os.path.join(executions, execution_id), peer)
        peer.sendall(protocol.encode({"op": "turn"}))
