"""The keeper's socket: who watches an execution, and what they ask for.

Speaks frames of `protocol`. To a client: `{"t": "hello", "phase": …}` first, with `"waits": [for what, how many are
before it]` where it stands in line, `{"t": "phase", "phase": …}` at each step, `{"t": "output"}` when there is more to
read; `{"t": "ended", "outcome": …, "started": …}` with what the folder says by then, where that fits a frame; end of
file means that the outcome is written. From a client:
`{"op": "stop", "mode": "cancel" | "kill", "reason": …}` and `{"op": "turn"}`.
"""

import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pyexec_guest import protocol
from pyexec_guest.keeper.loop import Loop
from pyexec_guest.keeper.places import SOCKET_NAME, bind_in, may_talk

MAX_CLIENTS = 64
OUTPUT_NOTICE_SECONDS = 0.02


class Client:
    """One connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.decoder = protocol.Decoder()
        self.held: bytearray | None = None


class Listener:
    """Accepts clients, hands on what they ask for, tells them what happens. Never waits for one of them."""

    def __init__(
        self,
        loop: Loop,
        on_message: "Callable[[dict[str, Any]], None]",
        first: socket.socket,
        waits: "Callable[[], tuple[str, int] | None]" = lambda: None,
        *,
        quiet_seconds: float = 0.0,
    ) -> None:
        """`quiet_seconds`: how long `first` is told nothing, since all may be over by then, and told at once."""
        self._loop = loop
        self._waits = waits
        self._on_message = on_message
        self._clients: dict[int, Client] = {}
        self._phase = "waiting"
        self._output_pending = False
        self._next_notice = 0.0
        self._folder = ""
        self._is_open = False
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._quiet_until = time.monotonic() + quiet_seconds if quiet_seconds else None
        self._add(Client(first))
        loop.add_timer(self._notify_output)
        loop.add_timer(self._end_quiet)

    def open(self, folder: str) -> None:
        """Listen in `folder`, which only its owner can enter; where all may be over in a moment, not before that."""
        self._folder = folder
        if self._quiet_until is None:
            self._listen(folder)

    def phase(self, phase: str) -> None:
        """Tell everybody which step is under way."""
        self._phase = phase
        self._broadcast({"t": "phase", "phase": phase})

    def output(self) -> None:
        """Note that there is more to read."""
        self._output_pending = True

    def ended(self, told: "dict[str, Any]") -> None:
        """Tell everybody how it has ended, unless that is too long."""
        try:
            frame = protocol.encode({"t": "ended", **told})
        except (RecursionError, ValueError):  # What a guest has said is in it.
            frame = b""
        if len(frame) <= protocol.SMALL_FRAME:
            for client in list(self._clients.values()):
                self._send(client, frame)
        self._quiet_until = None
        self._tell_held()

    def close(self) -> None:
        """Stop listening, then let go of everybody."""
        self._server.close()
        if self._is_open:
            with suppress(OSError):
                os.unlink(os.path.join(self._folder, SOCKET_NAME))
        for client in self._clients.values():
            client.connection.close()

    def _notify_output(self, now: float) -> "float | None":
        """Tell of new output, at most so often; return when, if that is later."""
        if not self._output_pending:
            return None
        if now < self._next_notice:
            return self._next_notice
        self._output_pending = False
        self._next_notice = now + OUTPUT_NOTICE_SECONDS
        self._broadcast({"t": "output"})
        return None

    def _accept(self) -> None:
        try:
            connection, _address = self._server.accept()
        except OSError:
            return
        if len(self._clients) >= MAX_CLIENTS or not may_talk(connection):
            connection.close()
            return
        self._add(Client(connection))

    def _add(self, client: Client) -> None:
        connection = client.connection
        connection.setblocking(False)
        if self._quiet_until is not None and not self._clients:
            client.held = bytearray()
        self._clients[connection.fileno()] = client
        self._loop.add_reader(connection.fileno(), lambda: self._read(client))
        hello: dict[str, Any] = {"t": "hello", "v": protocol.VERSION, "phase": self._phase}
        waits = self._waits()
        self._send(client, protocol.encode(hello if waits is None else {**hello, "waits": waits}))

    def _read(self, client: Client) -> None:
        try:
            data = client.connection.recv(65536)
            messages = client.decoder.feed(data)
        except BlockingIOError:
            return
        except (OSError, protocol.ProtocolError):
            data, messages = b"", []
        for message in messages:
            self._on_message(message)
        if not data:
            self._remove(client)

    def _remove(self, client: Client) -> None:
        if self._clients.pop(client.connection.fileno(), None) is not None:
            self._loop.remove_reader(client.connection.fileno())
            client.connection.close()

    def _broadcast(self, message: "dict[str, Any]") -> None:
        frame = protocol.encode(message)
        for client in list(self._clients.values()):
            self._send(client, frame, may_be_lost=message["t"] == "output")

    def _end_quiet(self, now: float) -> "float | None":
        """Tell what has been held back, when that is due; return when, if that is later."""
        if self._quiet_until is None or now < self._quiet_until:
            return self._quiet_until
        self._quiet_until = None
        self._tell_held()
        if self._folder:
            self._listen(self._folder)
        return None

    def _listen(self, folder: str) -> None:
        bind_in(folder, self._server)
        self._is_open = True
        self._server.listen(16)
        self._server.setblocking(False)
        self._loop.add_reader(self._server.fileno(), self._accept)

    def _tell_held(self) -> None:
        for client in list(self._clients.values()):
            held, client.held = client.held, None
            if held:
                self._send(client, bytes(held))

    def _send(self, client: Client, frame: bytes, *, may_be_lost: bool = False) -> None:
        if client.held is not None:
            client.held += frame
            return
        try:
            if client.connection.send(frame) != len(frame):
                self._remove(client)  # It does not read; a torn frame would only mislead it.
        except BlockingIOError:
            if not may_be_lost:
                self._remove(client)
        except OSError:
            return  # It has hung up; what it said before that is read next, and then it is let go.
