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
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any

from pyexec_guest import protocol
from pyexec_guest.reading import Reader

ACK_SECONDS = 10.0
RESEND_SECONDS = 0.02
RESENDINGS = 50
_HIGHEST_FD = 1000


class _Block:
    """Calls a function before and one after; it can be entered again, also within itself."""

    def __init__(self, before: "Callable[[], None]", after: "Callable[[], None]") -> None:
        self._before = before
        self._after = after

    def __enter__(self) -> None:
        self._before()

    def __exit__(self, *_error: object) -> None:
        self._after()


class Interrupts:
    """Ctrl-C for the turn that runs: it reaches the user's code, and never cuts a frame in two."""

    def __init__(self) -> None:
        self._armed = False
        self._shields = 0
        self._pending = False
        self._count = 0
        self._arming = _Block(self._arm, self._disarm)
        self._shielding = _Block(self.shield, self.unshield)

    def install(self) -> None:
        """Take the signal, also when the program has taken it away."""
        signal.signal(signal.SIGINT, self._on_signal)

    def armed(self) -> "AbstractContextManager[None]":
        """Let interrupts through to what runs inside."""
        return self._arming

    def shielded(self) -> "AbstractContextManager[None]":
        """Put an interrupt off until the end."""
        return self._shielding

    def _arm(self) -> None:
        self._pending = False
        self._armed = True

    def _disarm(self) -> None:
        self._armed = False

    def shield(self) -> None:
        """Put interrupts off, until `unshield`."""
        if _is_main():
            self._shields += 1

    def unshield(self) -> None:
        """Raise the one that has been put off, if this is the end of the outermost shield."""
        if not _is_main():
            return
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
    """Sends frames from any thread, and takes what arrives."""

    def __init__(self, connection: socket.socket, interrupts: Interrupts) -> None:
        self._socket: socket.socket | None = _moved_high(connection)
        self._interrupts = interrupts
        self._lock = threading.RLock()
        self._acknowledged = threading.Semaphore(0)
        self._waiting_for = -1
        self._is_muted = False
        self._reader: Reader | None = None
        self._being_alone = _Block(self._keep_others_away, self._let_others_in)
        os.register_at_fork(after_in_child=self._forget)

    @property
    def is_open(self) -> bool:
        """Whether this process still speaks for the guest; forked copies of it do not."""
        return self._socket is not None

    def alone(self) -> "AbstractContextManager[None]":
        """Keep other threads from sending until the end, and interrupts from coming in between."""
        return self._being_alone

    def send(self, message: "dict[str, Any]") -> None:
        """Send a frame. Where nobody listens any more it is lost, as this process soon is."""
        frame = protocol.encode(message)
        with self._interrupts.shielded(), self._lock:
            if self._socket is not None and not self._is_muted:
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
        """Begin to read. `on_message` is called with interrupts, from the thread that reads them."""
        if self._socket is None:
            return

        def take(message: "dict[str, Any]") -> None:
            if message.get("op") == "ack":
                self._on_ack(message.get("n"))
            else:
                on_message(message)

        self._reader = Reader(self._socket, take, on_end)

    def request(self) -> "dict[str, Any]":
        """Return the next request; from the main thread, which then has a turn or nothing to do."""
        return self._reading.request()

    def waits_for(self, seconds: float) -> bool:
        """Tell whether no request came in that time; from the main thread, between two turns."""
        return self._reading.waits_for(seconds)

    @contextmanager
    def muted(self) -> Generator[None]:
        """Send nothing."""
        self._is_muted = True
        try:
            yield
        finally:
            self._is_muted = False

    def begin_turn(self) -> None:
        """Have interrupts and acknowledgements be taken while this thread is busy."""
        self._reading.begin()

    def end_turn(self) -> None:
        """Have nothing be read before the next request is asked for."""
        self._reading.end()

    @property
    def _reading(self) -> Reader:
        if self._reader is None:
            raise RuntimeError("nobody listens yet")
        return self._reader

    def _keep_others_away(self) -> None:
        self._interrupts.shield()
        self._lock.acquire()

    def _let_others_in(self) -> None:
        self._lock.release()
        self._interrupts.unshield()

    def _on_ack(self, number: object) -> None:
        if number == self._waiting_for:
            self._acknowledged.release()

    def _forget(self) -> None:
        """Let go in a forked copy of this process, where another thread may have held the lock."""
        self._lock = threading.RLock()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._reader is not None:
            self._reader.forget()


def _is_main() -> bool:
    """Tell whether this is the thread that signals are served on."""
    return threading.current_thread() is threading.main_thread()


def _moved_high(connection: socket.socket) -> socket.socket:
    """Move a connection out of the way of programs that close, or write to, low descriptors."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = max(3, min(_HIGHEST_FD, soft - 8 if soft > 0 else _HIGHEST_FD))
    fd = fcntl.fcntl(connection.fileno(), fcntl.F_DUPFD_CLOEXEC, lowest)
    connection.close()
    return socket.socket(fileno=fd)
