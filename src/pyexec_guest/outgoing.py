"""Where files go that a turn makes for its reader: into a folder, or in pieces over the channel."""

import base64
import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any, Protocol

PIECE_BYTES = 768 * 1024
"""How much of a file one frame carries; as base64 that is a megabyte."""

LARGEST = 64 * 1024 * 1024
TOGETHER = 128 * 1024 * 1024
"""How much is sent in one turn; whoever receives it allows no more."""

MOST = 150
"""How many files are sent in one turn."""


class Store(Protocol):
    """Takes files."""

    def keep(self, name: str, data: bytes) -> bool:
        """Take data under a name; tell whether there was room for it.

        Raises:
            OSError: It could not be written.
        """
        ...

    def keep_written(self, name: str, write: "Callable[[str], bool]") -> "int | None":
        """Have a function write a file at the path it is given; return its size, None where there is none."""
        ...


class Folder:
    """A folder that is read from outside."""

    def __init__(self, path: str) -> None:
        self._path = path

    def keep(self, name: str, data: bytes) -> bool:
        """Write a file."""
        with open(os.path.join(self._path, name), "wb") as file:
            file.write(data)
        return True

    def keep_written(self, name: str, write: "Callable[[str], bool]") -> "int | None":
        """Have a file written in its place."""
        path = os.path.join(self._path, name)
        return os.path.getsize(path) if write(path) else None


class Sender:
    """Sends files in pieces, one file after the other.

    Args:
        send: Sends one piece, as an event of the turn; tells whether it could be one.
        alone: Within it, nothing else is sent, and no interrupt comes in between: a file is sent whole or not at all.
    """

    def __init__(
        self, send: "Callable[[dict[str, Any]], bool]", alone: "Callable[[], AbstractContextManager[None]]"
    ) -> None:
        self._send = send
        self._alone = alone
        self._room = 0
        self._left = 0

    def begin(self) -> None:
        """Begin a turn."""
        self._room = TOGETHER
        self._left = MOST

    def keep(self, name: str, data: bytes) -> bool:
        """Send data as a file."""
        with self._alone():
            if not self._has_room(len(data)):
                return False
            pieces = [data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)] or [b""]
            for number, piece in enumerate(pieces, start=1):
                if not self._piece(name, piece, len(data) if number == len(pieces) else None):
                    return False
            self._count(len(data))
            return True

    def keep_written(self, name: str, write: "Callable[[str], bool]") -> "int | None":
        """Have a file written somewhere, and send it."""
        fd, path = tempfile.mkstemp(prefix="pyexec-", suffix=os.path.splitext(name)[1])
        os.close(fd)
        try:
            return self.keep_file(name, path) if write(path) else None
        finally:
            with suppress(OSError):
                os.unlink(path)

    def keep_file(self, name: str, path: str) -> "int | None":
        """Send a file as it is now; return its size, None where there is no room for it.

        Raises:
            OSError: It cannot be read.
        """
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb", buffering=0) as file, self._alone():
            state = os.fstat(fd)
            if not stat.S_ISREG(state.st_mode) or not self._has_room(state.st_size):
                return None
            sent = 0
            while True:
                piece = file.read(min(PIECE_BYTES, state.st_size - sent))
                sent += len(piece)
                last = not piece or sent == state.st_size
                if not self._piece(name, piece, sent if last else None):
                    return None
                if last:
                    self._count(sent)
                    return sent

    def _has_room(self, size: int) -> bool:
        return self._left > 0 and size <= min(LARGEST, self._room)

    def _count(self, size: int) -> None:
        self._left -= 1
        self._room -= size

    def _piece(self, name: str, data: bytes, size: "int | None") -> bool:
        fields: dict[str, Any] = {
            "name": name,
            "data": base64.b64encode(data).decode("ascii"),
            "last": size is not None,
        }
        return self._send(fields if size is None else {**fields, "size": size})
