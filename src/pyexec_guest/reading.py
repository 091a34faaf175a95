"""What arrives at the guest, read by whoever has nothing else to do.

That is the main thread between two turns, and a thread of its own while the main thread runs a cell: that one reads
interrupts and acknowledgements. If it read requests as well, each would have to be handed over from thread to thread,
which takes as long as many a cell. Which of the two reads is told by an epoll, which the thread waits on for good.
"""

import _thread
import fcntl
import queue
import select
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any

from pyexec_guest import protocol

_RECEIVED = 64 * 1024
_URGENT = ("ack", "interrupt")
_IN = getattr(select, "EPOLLIN", 0)


class Reader:
    """Reads frames from a socket.

    Args:
        connection: The socket.
        take: Is called with a message that cannot wait, on the thread that has read it.
        on_end: Is called when nothing more comes, or what comes is not from one of ours.
    """

    def __init__(
        self, connection: socket.socket, take: "Callable[[dict[str, Any]], None]", on_end: "Callable[[], None]"
    ) -> None:
        self._connection = connection
        self._take = take
        self._on_end = on_end
        self._decoder = protocol.Decoder(protocol.GUEST_FRAME)
        self._requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._watching = False
        self._turns = _epoll(connection) if hasattr(select, "epoll") else None
        # No `threading.Thread`: the program would find one among its own that it has not started.
        _thread.start_new_thread(self._watch, ())

    def request(self) -> "dict[str, Any]":
        """Return the next request, between two turns."""
        if self._turns is not None:
            while self._requests.empty():
                for message in self._read():
                    self._take(message)
        return self._requests.get()

    def waits_for(self, seconds: float) -> bool:
        """Wait for a request; tell whether none came in that time. Between two turns."""
        asked = select.poll()
        asked.register(self._connection.fileno(), _IN)
        return self._requests.empty() and not asked.poll(seconds * 1000)

    def begin(self) -> None:
        """Have the thread read, while the calling one does something else."""
        if self._turns is not None:
            with self._lock:
                self._watching = True
                self._turns.register(self._connection.fileno(), _IN)

    def end(self) -> None:
        """Have it not read any more."""
        if self._turns is not None:
            with self._lock:
                self._watching = False
                self._turns.unregister(self._connection.fileno())

    def forget(self) -> None:
        """Let go in a forked copy of this process, which has no such thread."""
        if self._turns is not None:
            self._turns.close()
            self._turns = None

    def _watch(self) -> None:
        # An interrupt has to wake the main thread, where the user's code waits for something.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        while self._turns is not None:
            try:
                self._turns.poll()
            except (OSError, ValueError):
                self._on_end()
                return
            with self._lock:
                # It may be the main thread's again by now: what is there is for that one to read.
                urgent = self._read(socket.MSG_DONTWAIT) if self._watching else []
            for message in urgent:
                self._take(message)
        while True:  # There is no epoll here: this thread reads all.
            for message in self._read():
                self._take(message)

    def _read(self, flags: int = 0) -> "list[dict[str, Any]]":
        """Read once; return what cannot wait."""
        try:
            data = self._connection.recv(_RECEIVED, flags)
            messages = self._decoder.feed(data)
        except BlockingIOError:
            return []
        except (OSError, protocol.ProtocolError):
            data, messages = b"", []
        urgent: list[dict[str, Any]] = []
        for message in messages:
            if message.get("op") in _URGENT:
                urgent.append(message)
            else:
                self._requests.put(message)
        if not data:
            self._on_end()
        return urgent


def _epoll(connection: socket.socket) -> "select.epoll":
    """Make an epoll, with a descriptor as high as that of the connection."""
    made = select.epoll()
    fd = fcntl.fcntl(made.fileno(), fcntl.F_DUPFD_CLOEXEC, connection.fileno())
    made.close()
    return select.epoll.fromfd(fd)
