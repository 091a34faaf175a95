"""Guarding an execution inside a server's own process, with the files and the socket that a keeper would have.

So whoever looks at its folder, or wants it to end, need not know the difference; but it ends when the process does.
"""

import fcntl
import logging
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio

from pyexec.sandbox.claims import LOCK
from pyexec.sandbox.keepers import StopMode
from pyexec_guest import log, protocol
from pyexec_guest.keeper import linux
from pyexec_guest.keeper.places import SOCKET_NAME, bind_in, may_talk
from pyexec_guest.keeper.record import Record

_log = logging.getLogger(__name__)

REASON_CHARACTERS = 4000
STDERR_BYTES = 256 * 1024

OnStop = Callable[[StopMode, str], None]

_locks: set[int] = set()


def _let_go_in_child() -> None:
    """A fork of this process does not do its work, and must not look as if it did."""
    for fd in _locks:
        with suppress(OSError):
            os.close(fd)
    _locks.clear()


os.register_at_fork(after_in_child=_let_go_in_child)


class InsideGuard:
    """Guards one execution from its folder to its outcome. All but `serve` blocks on the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        _locks.add(self._lock)
        self._record = Record(folder)
        self._events = log.EventWriter(os.fspath(folder))
        self._socket = _listen(folder)
        self._started_at: float | None = None
        self._ended = False

    def started(self) -> None:
        """Note that the work has begun."""
        self._started_at = time.time()
        pid = os.getpid()
        started: dict[str, Any] = {
            "boot": linux.boot_id(),
            "pid": pid,
            "start_ticks": linux.start_ticks(pid),
            "started_at": self._started_at,
            "group": None,
            "pipes": [],
            "inside": True,
        }
        self._record.started(started)
        self._events.note("status", self._started_at, status="running", pid=pid)

    def end(self, kind: str, reason: str | None, stderr: str = "") -> None:
        """Write the outcome, once."""
        if self._ended:
            return
        self._ended = True
        try:
            said = stderr.encode("utf-8", "backslashreplace")[-STDERR_BYTES:]
            if said:
                with suppress(OSError), open(self._folder / "stderr", "wb", opener=_private) as file:
                    file.write(said)
            now = time.time()
            outcome: dict[str, Any] = {
                "v": protocol.VERSION,
                "kind": kind,
                "reason": None if reason is None else reason[:REASON_CHARACTERS],
                "started_at": self._started_at,
                "ended_at": now,
                "stdout_bytes": 0,
                "stderr_bytes": len(said),
            }
            self._events.note("status", now, status="ended", outcome=kind)
            self._record.ended(outcome)
        except OSError as error:  # Its folder was removed, or the disk is broken: whoever looks will call it lost.
            _log.warning("the outcome of %s could not be written: %s", self._folder.name, error)

    async def serve(self, on_stop: OnStop) -> None:
        """Listen to whoever wants it to end, until this is cancelled; those who wait are let go then."""
        if self._socket is None:
            return
        async with anyio.create_task_group() as clients:
            while True:
                await anyio.wait_readable(self._socket)
                with suppress(OSError):
                    connection, _address = self._socket.accept()
                    clients.start_soon(_talk, connection, on_stop)

    def close(self) -> None:
        """Let go, once. Nobody may be in `serve` any more: an event loop must not watch what is closed."""
        if self._lock < 0:
            return
        self._events.close()
        if self._socket is not None:
            self._socket.close()
            with suppress(OSError):
                (self._folder / SOCKET_NAME).unlink()
        _locks.discard(self._lock)
        os.close(self._lock)
        self._lock = -1


def _listen(folder: Path) -> socket.socket | None:
    """Open the socket; None where that cannot be, so that other servers cannot end it, and only wait."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bind_in(folder, server)
        server.listen(16)
        server.setblocking(False)
    except OSError as error:
        _log.warning("no socket in %s: %s", folder, error)
        server.close()
        return None
    return server


async def _talk(connection: socket.socket, on_stop: OnStop) -> None:
    with connection:
        connection.setblocking(False)
        if not may_talk(connection):
            return
        decoder = protocol.Decoder()
        with suppress(OSError, protocol.ProtocolError):
            connection.send(protocol.encode({"t": "hello", "v": protocol.VERSION, "phase": "running"}))
            while True:
                await anyio.wait_readable(connection)
                data = connection.recv(65536)
                if not data:
                    return
                for message in decoder.feed(data):
                    if message.get("op") == "stop":
                        mode: StopMode = "kill" if message.get("mode") == "kill" else "cancel"
                        on_stop(mode, str(message.get("reason") or "")[:REASON_CHARACTERS])


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
