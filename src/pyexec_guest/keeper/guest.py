"""The keeper's end of a guest's channel, for an execution that is one turn of a guest.

What the guest says is written down in `frames`, each frame with where standard output and error were by then; it is
not believed: whoever reads it judges it.
"""

import os
import secrets
import socket
from collections.abc import Callable
from typing import Any

from pyexec_guest import protocol
from pyexec_guest.keeper.loop import Loop

CHANNEL = "PYEXEC_CHANNEL"
FRAMES = "frames"
MAX_FRAMES_BYTES = 64 * 1024 * 1024
_GULP_BYTES = 256 * 1024
_KIND_CHARACTERS = 40


class GuestLink:
    """Sends the request, puts what comes back in order with the output, and keeps it.

    Args:
        loop: The keeper's.
        folder: The execution's.
        request: The turn, but for its id.
        positions: Reads all output there is now; returns how many bytes each stream has had.
        on_display: Hears what kind of display came.
        connection: To a guest that runs already; None makes a pair, whose other end is `guests_end`.
    """

    def __init__(
        self,
        loop: Loop,
        folder: str,
        request: "dict[str, Any]",
        positions: "Callable[[], list[int]]",
        on_display: "Callable[[str], None]",
        connection: "socket.socket | None" = None,
    ) -> None:
        self._loop = loop
        self._request = {**request, "op": "run", "turn": secrets.token_hex(16), "last": True}
        self._positions = positions
        self._on_display = on_display
        self._decoder = protocol.Decoder(protocol.GUEST_FRAME)
        self._room = MAX_FRAMES_BYTES
        self._greeted = False
        self._theirs: socket.socket | None = None
        if connection is None:
            connection, self._theirs = socket.socketpair()
        self._ours = connection
        self._ours.setblocking(False)
        self._is_open = True
        self._closing = False
        path = os.path.join(folder, FRAMES)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._write({"t": "turn", "turn": self._request["turn"]})
        loop.add_reader(self._ours.fileno(), self._read)

    @property
    def guests_end(self) -> int:
        """The descriptor that the guest inherits."""
        return -1 if self._theirs is None else self._theirs.fileno()

    def close(self) -> None:
        """Take what has arrived, and let go."""
        if self._theirs is not None:
            self._theirs.close()
        self._closing = True
        while self._is_open:
            self._read()
        os.close(self._file)

    def _read(self) -> None:
        try:
            data = self._ours.recv(_GULP_BYTES)
        except (BlockingIOError, InterruptedError):
            if self._closing:
                self._hang_up()  # Something that the guest has left behind holds its end; it says no more to us.
            return
        except OSError:
            data = b""
        try:
            for message in self._decoder.messages(data):
                if self._is_open:
                    self._take(message)
        except protocol.ProtocolError:
            data = b""
        if not data:
            self._hang_up()

    def _take(self, message: "dict[str, Any]") -> None:
        kind = message.get("t")
        if not self._greeted:
            self._greeted = True
            if kind != "hello" or message.get("v") != protocol.VERSION:
                self._hang_up()
                return
            self._send(self._request)
        in_order = kind == "event" and message.get("k") in ("display", "told")
        self._write({**message, "at": self._positions()})
        if in_order:
            self._send({"op": "ack", "n": message.get("n")})
            if message.get("k") == "display":
                self._on_display(str(message.get("kind"))[:_KIND_CHARACTERS])

    def _write(self, message: "dict[str, Any]") -> None:
        frame = protocol.encode(message)
        if len(frame) > self._room:
            return
        try:
            written = os.write(self._file, frame)
        except OSError:
            written = 0
        if written == len(frame):
            self._room -= written
        else:
            self._room = 0  # A full disk has torn it; nothing behind it could be read.

    def _send(self, message: "dict[str, Any]") -> None:
        try:
            self._ours.sendall(protocol.encode(message))
        except OSError:
            self._hang_up()  # It does not read.

    def _hang_up(self) -> None:
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._ours.fileno())
            self._ours.close()
