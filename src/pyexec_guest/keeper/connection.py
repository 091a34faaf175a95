"""The keeper's end of a guest's channel, which may live for many turns."""

import os
import socket
from collections.abc import Callable
from typing import Any

from pyexec_guest import protocol
from pyexec_guest.keeper.loop import Loop

_GULP_BYTES = 256 * 1024
_UNSENT_BYTES = 1024 * 1024


class GuestConnection:
    """Sends frames to a guest and takes its own. Between turns nobody, or somebody else, may listen to it.

    Args:
        connection: The socket, which is this object's from now on.

    Attributes:
        greeted: Whether the guest has said its first word.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.greeted = False
        self._socket = connection
        self._socket.setblocking(False)
        self._decoder = protocol.Decoder(protocol.GUEST_FRAME)
        self._unsent = bytearray()
        self._most_unsent = _UNSENT_BYTES
        self._writer: int | None = None
        self._is_open = True
        self._listening: tuple[Loop, Callable[[dict[str, Any]], None], Callable[[str | None], None]] | None = None

    @property
    def is_open(self) -> bool:
        """Whether the guest is still listened to."""
        return self._is_open

    def listen(
        self, loop: Loop, take: "Callable[[dict[str, Any]], None]", on_end: "Callable[[str | None], None]"
    ) -> None:
        """Hand each frame to `take` from now on; `on_end` hears of the end, and why where it is the guest's fault."""
        self._listening = (loop, take, on_end)
        loop.add_reader(self._socket.fileno(), self.read)
        if self._unsent:
            self._flush()

    def leave(self) -> None:
        """Listen no more; what has not been read waits for whoever listens next."""
        if self._listening is not None and self._is_open:
            self._listening[0].remove_reader(self._socket.fileno())
            self._stop_writing()
        self._listening = None

    def read(self) -> bool:
        """Take what has arrived; tell whether there was anything."""
        if not self._is_open or self._listening is None:
            return False
        _loop, take, on_end = self._listening
        try:
            data = self._socket.recv(_GULP_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            data = b""
        try:
            for message in self._decoder.messages(data):
                if self._is_open:
                    take(message)
        except protocol.ProtocolError as error:
            self.hang_up()
            on_end(str(error))
            return False
        if not data and self._is_open:
            self.hang_up()
            on_end(None)
        return bool(data)

    def send(self, message: "dict[str, Any]", *, large: bool = False) -> None:
        """Send a message: at once, or as the guest reads. One that reads nothing is let go of.

        `large` ones do not count against what may wait.
        """
        if not self._is_open:
            return
        waiting = len(self._unsent)
        frame = protocol.encode(message)
        if large:
            self._most_unsent = _UNSENT_BYTES + len(frame)
        self._unsent += frame
        if waiting > self._most_unsent:
            self._end()
            return
        self._flush()

    def hang_up(self) -> None:
        """Let go of the guest for good."""
        if self._is_open:
            self.leave()
            self._is_open = False
            self._socket.close()

    def _end(self) -> None:
        on_end = self._listening[2] if self._listening is not None else None
        self.hang_up()
        if on_end is not None:
            on_end(None)

    def _flush(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self._socket.send(self._unsent)]
        except (BlockingIOError, InterruptedError):
            if self._writer is None and self._listening is not None:
                self._writer = os.dup(self._socket.fileno())
                self._listening[0].add_writer(self._writer, self._flush)
            return
        except OSError:
            self._end()
            return
        self._stop_writing()

    def _stop_writing(self) -> None:
        if self._writer is not None and self._listening is not None:
            self._listening[0].remove_writer(self._writer)
            os.close(self._writer)
            self._writer = None
