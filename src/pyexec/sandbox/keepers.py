"""Talking to a keeper that already guards an execution, whoever started it."""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import anyio

from pyexec_guest import protocol
from pyexec_guest.keeper.places import connect_in

StopMode = Literal["cancel", "kill"]


class KeeperConnection:
    """One conversation with a keeper."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._decoder = protocol.Decoder()
        self._messages: list[dict[str, Any]] = []

    async def next(self) -> dict[str, Any] | None:
        """Return the keeper's next message; None when it has ended (the outcome is written, or it was killed)."""
        while not self._messages:
            await anyio.wait_readable(self._connection)
            try:
                data = self._connection.recv(65536)
            except BlockingIOError:
                continue
            except OSError:
                return None
            if not data:
                return None
            self._messages += self._decoder.feed(data)
        return self._messages.pop(0)

    def stop(self, mode: StopMode, reason: str) -> None:
        """Ask the keeper to end the execution."""
        self._connection.sendall(protocol.encode({"op": "stop", "mode": mode, "reason": reason}))


def kill(folder: Path, reason: str) -> None:
    """Ask the keeper of an execution, if it has one, to kill it; does not wait for that. Blocks for a moment."""
    connection = _connect(folder)
    if connection is not None:
        with connection, suppress(OSError):
            KeeperConnection(connection).stop("kill", reason)


@asynccontextmanager
async def connect(folder: Path) -> AsyncGenerator[KeeperConnection | None]:
    """Connect to the keeper of an execution; yields None when it has none (it has ended, or is lost)."""
    connection = await anyio.to_thread.run_sync(_connect, folder)
    if connection is None:
        yield None
        return
    try:
        yield KeeperConnection(connection)
    finally:
        connection.close()


def _connect(folder: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connect_in(folder, connection)
    except OSError:
        connection.close()
        return None
    connection.setblocking(False)
    return connection
