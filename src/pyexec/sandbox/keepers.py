"""Talking to a keeper that already guards an execution, whoever started it."""

import socket
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Literal

import anyio

from pyexec_guest import protocol
from pyexec_guest.keeper.places import connect_in

StopMode = Literal["cancel", "kill"]

NOTE_SECONDS = 20.0
_GULP_BYTES = 65536


class KeeperConnection:
    """One conversation with a keeper.

    Args:
        connection: To it; this object's from now on.
        take_back: Is given the connection when all has been said on it and the keeper waits for something else to do.
    """

    def __init__(
        self, connection: socket.socket, take_back: Callable[[socket.socket], None] = socket.socket.close
    ) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._take_back = take_back
        self._decoder = protocol.Decoder()
        self._messages: deque[dict[str, Any]] = deque()
        self._untold = b""
        self._is_over = False
        self._is_free = False

    async def next(self) -> dict[str, Any] | None:
        """Return the keeper's next message; None when it has ended (the outcome is written, or it was killed)."""
        while not self._messages and not self._is_over:
            if not self._take_what_is_there():
                await anyio.wait_readable(self._connection)
        return self._messages.popleft() if self._messages else None

    def next_within(self, seconds: float) -> dict[str, Any] | None:
        """Do the same on a thread that waits.

        Raises:
            OSError: It says nothing for so long.
        """
        self._connection.settimeout(seconds)
        try:
            while not self._messages and not self._is_over:
                self._take(self._connection.recv(_GULP_BYTES))
        finally:
            self._connection.setblocking(False)
        return self._messages.popleft() if self._messages else None

    async def first(self) -> dict[str, Any] | None:
        """Return what `next` will, and leave it to that."""
        message = await self.next()
        if message is not None:
            self._messages.appendleft(message)
        return message

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message; what is not taken at once is for `all_told`."""
        self._untold += protocol.encode(message)
        self._tell_more()

    async def all_told(self) -> None:
        """Wait until the keeper has taken all of it, or has gone."""
        while self._untold:
            await anyio.wait_writable(self._connection)
            self._tell_more()

    def said(self, kind: str) -> dict[str, Any] | None:
        """Return a message of a kind that has arrived already, and has not been taken; it is not taken by this."""
        return next((message for message in self._messages if message.get("t") == kind), None)

    async def noted(self) -> dict[str, Any]:
        """Wait until what has ended is written down, where its end says `noting`; return what its keeper says of that.

        One that is killed meanwhile says nothing.
        """
        note = self._take_note()
        if note is None:  # Most often it is there by now, and no time need be kept.
            with anyio.move_on_after(NOTE_SECONDS):
                while note is None and not self._is_over:
                    await anyio.wait_readable(self._connection)
                    note = self._take_note()
        self._is_free = note is not None and note.get("again") is True
        return note or {}

    def stop(self, mode: StopMode, reason: str) -> None:
        """Ask the keeper to end the execution."""
        self._connection.sendall(protocol.encode({"op": "stop", "mode": mode, "reason": reason}))

    def close(self) -> None:
        """Hang up; the keeper goes on."""
        if self._is_free and not self._messages and not self._is_over and self._decoder.is_empty:
            self._take_back(self._connection)
        else:
            self._connection.close()

    def _tell_more(self) -> None:
        try:
            self._untold = self._untold[self._connection.send(self._untold) :]
        except BlockingIOError:
            return
        except OSError:  # It has gone, and what it has said before that is there to be read.
            self._untold = b""

    def _take_note(self) -> dict[str, Any] | None:
        """Return what has arrived of what `noted` waits for; what came before it is of no use any more."""
        self._take_what_is_there()
        while self._messages:
            message = self._messages.popleft()
            if message.get("t") in ("noted", "failed"):
                return message
        return None

    def _take_what_is_there(self) -> bool:
        """Read once; tell whether there was anything to read, be it the end."""
        try:
            self._take(self._connection.recv(_GULP_BYTES))
        except BlockingIOError:
            return False
        except OSError:
            self._is_over = True
        return True

    def _take(self, data: bytes) -> None:
        """Take what has arrived. What is no message of a keeper ends the conversation; what came before it counts."""
        self._is_over = not data
        try:
            for message in self._decoder.messages(data):
                self._messages.append(message)
        except protocol.ProtocolError:
            self._is_over = True


@asynccontextmanager
async def connect(folder: Path) -> AsyncGenerator[KeeperConnection | None]:
    """Connect to the keeper of an execution; yields None when it has none (it has ended, or is lost)."""
    connection = await anyio.to_thread.run_sync(_connect, folder)
    if connection is None:
        yield None
        return
    with closing(KeeperConnection(connection)) as keeper:
        yield keeper


def _connect(folder: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connect_in(folder, connection)
    except OSError:
        connection.close()
        return None
    return connection
