"""The lock that says an execution has somebody who guards it, and its place in line."""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from pyexec_guest.keeper.turn import id_of, is_locked, take_place

LOCK = "lock"
OUTCOME = "outcome.json"


@dataclass(frozen=True, slots=True)
class Claim:
    """A lock that is held, and the queue entry that leads to it."""

    lock_fd: int
    entry: str

    def release(self) -> None:
        """Let go of our copy of the lock; a keeper that got it holds it on."""
        os.close(self.lock_fd)


def claim(folder: Path, queue: Path, execution_id: str) -> Claim:
    """Lock a new execution's folder and stand it at the end of the line."""
    lock = folder / LOCK
    fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        entry = take_place(os.fspath(queue), os.fspath(lock), execution_id)
    except BaseException:
        os.close(fd)
        raise
    return Claim(fd, entry)


def ids_in(queue: Path) -> set[str]:
    """Return the executions that have a place in a line, or had one and nobody has tidied up."""
    try:
        return {id_of(name) for name in os.listdir(queue) if not name.startswith(".")}
    except FileNotFoundError:
        return set()


def is_held(folder: Path) -> bool:
    """Tell whether somebody guards this execution."""
    return is_locked(os.path.join(folder, LOCK))


def is_taken(place: Path) -> bool:
    """Tell whether whoever stands at this place in a queue is still there."""
    return is_locked(os.fspath(place))


def is_at_work(lock: Path) -> bool:
    """Tell whether the execution that this lock belongs to may still run something.

    A keeper holds the lock a moment longer than that: until it has tidied up behind itself.
    """
    return is_locked(os.fspath(lock)) and not lock.with_name(OUTCOME).exists()
