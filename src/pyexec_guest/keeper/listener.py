"""The keeper's socket: who watches an execution, and what they ask for.

Speaks frames of `protocol`. To a client: `{"t": "hello", "phase": …}` first, with `"waits": [for what, how many are
before it]` where it stands in line, `{"t": "phase", "phase": …}` at each step, `{"t": "output"}` when there is more to
read; `{"t": "ended", "outcome": …, "started": …}` with what the folder says by then, where that fits a frame; end of
file means that the outcome is written. From a client:
`{"op": "stop", "mode": "cancel" | "kill", "reason": …}` and `{"op": "turn"}`.
"""

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pyexec_guest import protocol
from pyexec_guest.keeper.loop import Loop
from pyexec_guest.keeper.places import SOCKET_NAME, bind_in, may_talk

MAX_CLIENTS = 64
OUTPUT_NOTICE_SECONDS = 0.02


def ended_frame(told: "dict[str, Any]") -> "bytes | None":
    """Return what a client is told of the end; None where that is too long, or no JSON: a guest's words are in it."""
    try:
        frame = protocol.encode({"t": "ended", **told})
    except (RecursionError, ValueError):
        return None
    return frame if len(frame) <= protocol.SMALL_FRAME else None


class Client:
    """One connection; `decoder` holds what has arrived of a frame already."""

    def __init__(self, connection: socket.socket, decoder: "protocol.Decoder | None" = None) -> None:
        self.connection = connection
        self.decoder = decoder or protocol.Decoder()


class Listener:
    """Accepts clients, hands on what they ask for, tells them what happens. Never waits for one of them."""

    def __init__(
        self,
        loop: Loop,
        on_message: "Callable[[dict[str, Any]], None]",
        first: Client,
        waits: "Callable[[], tuple[str, int] | None]" = lambda: None,
    ) -> None:
        self._loop = loop
        self._waits = waits
        self._on_message = on_message
        self._clients: dict[int, Client] = {}
        self._phase = "waiting"
        self._output_pending = False
        self._next_notice = 0.0
        self._folder = ""
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._add(first)
        loop.add_timer(self._notify_output)

    def open(self, folder: str) -> None:
        """Listen in `folder`, which only its owner can enter."""
        self._folder = folder
        bind_in(folder, self._server)
        self._server.listen(16)
        self._server.setblocking(False)
        self._loop.add_reader(self._server.fileno(), self._accept)

    def phase(self, phase: str) -> None:
        """Tell everybody which step is under way."""
        self._phase = phase
        self._broadcast({"t": "phase", "phase": phase})

    def output(self) -> None:
        """Note that there is more to read."""
        self._output_pending = True

    def ended(self, told: "dict[str, Any]") -> None:
        """Tell everybody how it has ended, unless that is too long."""
        frame = ended_frame(told)
        if frame is not None:
            for client in list(self._clients.values()):
                self._send(client, frame)

    def close(self) -> None:
        """Stop listening, then let go of everybody."""
        self._server.close()
        if self._folder:
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

    def _send(self, client: Client, frame: bytes, *, may_be_lost: bool = False) -> None:
        try:
            if client.connection.send(frame) != len(frame):
                self._remove(client)  # It does not read; a torn frame would only mislead it.
        except BlockingIOError:
            if not may_be_lost:
                self._remove(client)
        except OSError:
            return  # It has hung up; what it said before that is read next, and then it is let go.
