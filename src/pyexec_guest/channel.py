"""The guest's end of the one connection it has.

To the guest: `{"op": "run", "turn": …, "code": … | "path": …}`, `{"op": "info", "turn": …}`, `{"op": "ack", "n": …}`,
`{"op": "interrupt", "turn": …}`, `{"op": "close"}`. From it: `hello` first; for each turn its `event`s, numbered from
1 on, and `done`, which carries the next number; `late` for what threads of an earlier turn still say. A turn's id is
random and comes with the request, so what was sent for one turn says nothing for another.

A run may come with `stdin` (a text, or true for what descriptor 0 is), `env` (variables for that turn), `tell` (write
a traceback on stderr too) and `last` (the guest ends after it). Its events are of the kinds `display`, `told` and
`file`: a piece of a file, `{"name": …, "data": base64, "last": false}`, the last one with the whole `size`. A file is
sent piece by piece with no other one in between.

The descriptor lies high, is not inherited by programs, and is let go of in forked copies of this process.
"""

import fcntl
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from pyexec_guest import protocol

ACK_SECONDS = 10.0
RESEND_SECONDS = 0.02
RESENDINGS = 50
_HIGHEST_FD = 1000


class Interrupts:
    """Ctrl-C for the turn that runs: it reaches the user's code, and never cuts a frame in two."""

    def __init__(self) -> None:
        self._armed = False
        self._shields = 0
        self._pending = False
        self._count = 0

    def install(self) -> None:
        """Take the signal, also when the program has taken it away."""
        signal.signal(signal.SIGINT, self._on_signal)

    @contextmanager
    def armed(self) -> Generator[None]:
        """Let interrupts through to what runs inside."""
        self.install()
        self._pending = False
        self._armed = True
        try:
            yield
        finally:
            self._armed = False

    @contextmanager
    def shielded(self) -> Generator[None]:
        """Put an interrupt off until the end."""
        if threading.current_thread() is not threading.main_thread():
            yield  # Signals are served on the main thread only.
            return
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
            if not self._shields and self._pending:
                self._pending = False
                if self._armed:
                    raise KeyboardInterrupt

    def deliver(self, is_wanted: "Callable[[], bool]") -> None:
        """Interrupt the main thread, and the programs it has started, as Ctrl-C at a terminal would.

        A signal that arrives when the main thread is just about to wait for something would not end that wait: it is
        sent again until it has been noticed.
        """
        count = self._count
        main = threading.main_thread().ident or 0
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGINT)
        else:
            signal.pthread_kill(main, signal.SIGINT)
        for _time in range(RESENDINGS):
            time.sleep(RESEND_SECONDS)
            if self._count != count or not is_wanted():
                return
            signal.pthread_kill(main, signal.SIGINT)

    def _on_signal(self, _number: int, _frame: "FrameType | None") -> None:
        self._count += 1
        if not self._armed:
            return  # Nothing of the user's runs: it came too late.
        if self._shields:
            self._pending = True
        else:
            raise KeyboardInterrupt


class Channel:
    """Sends frames from any thread; hands what arrives to `on_message`, from a thread of its own."""

    def __init__(self, connection: socket.socket, interrupts: Interrupts) -> None:
        self._socket: socket.socket | None = _moved_high(connection)
        self._interrupts = interrupts
        self._lock = threading.RLock()
        self._acknowledged = threading.Semaphore(0)
        self._waiting_for = -1
        os.register_at_fork(after_in_child=self._forget)

    @property
    def is_open(self) -> bool:
        """Whether this process still speaks for the guest; forked copies of it do not."""
        return self._socket is not None

    @contextmanager
    def alone(self) -> Generator[None]:
        """Keep other threads from sending until the end, and interrupts from coming in between."""
        with self._interrupts.shielded(), self._lock:
            yield

    def send(self, message: "dict[str, Any]") -> None:
        """Send a frame. Where nobody listens any more it is lost, as this process soon is."""
        frame = protocol.encode(message)
        with self._interrupts.shielded(), self._lock:
            if self._socket is not None:
                try:
                    self._socket.sendall(frame)
                except OSError:
                    return

    def send_and_wait(self, message: "dict[str, Any]") -> None:
        """Send an event and wait until it has been put in its place among the output."""
        with self._interrupts.shielded(), self._lock:
            self._waiting_for = int(message["n"])
            self.send(message)
            if self._socket is not None:
                self._acknowledged.acquire(timeout=ACK_SECONDS)
            self._waiting_for = -1

    def listen(self, on_message: "Callable[[dict[str, Any]], None]", on_end: "Callable[[], None]") -> None:
        """Begin to read."""
        if self._socket is None:
            return
        reader = threading.Thread(
            target=self._read, args=(self._socket, on_message, on_end), name="pyexec-channel", daemon=True
        )
        reader.start()

    def _read(
        self,
        connection: socket.socket,
        on_message: "Callable[[dict[str, Any]], None]",
        on_end: "Callable[[], None]",
    ) -> None:
        # An interrupt has to wake the main thread, where the user's code waits for something.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        decoder = protocol.Decoder(protocol.GUEST_FRAME)
        while True:
            try:
                data = connection.recv(256 * 1024)
                messages = decoder.feed(data)
            except (OSError, protocol.ProtocolError):
                data, messages = b"", []
            for message in messages:
                if message.get("op") == "ack":
                    self._on_ack(message.get("n"))
                else:
                    on_message(message)
            if not data:
                on_end()
                return

    def _on_ack(self, number: object) -> None:
        if number == self._waiting_for:
            self._acknowledged.release()

    def _forget(self) -> None:
        """Let go in a forked copy of this process, where another thread may have held the lock."""
        self._lock = threading.RLock()
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _moved_high(connection: socket.socket) -> socket.socket:
    """Move a connection out of the way of programs that close, or write to, low descriptors."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = max(3, min(_HIGHEST_FD, soft - 8 if soft > 0 else _HIGHEST_FD))
    fd = fcntl.fcntl(connection.fileno(), fcntl.F_DUPFD_CLOEXEC, lowest)
    connection.close()
    return socket.socket(fileno=fd)
