"""From the pipe of a program to the log, in gulps."""

import array
import fcntl
import os
import termios
import threading
import time
from collections.abc import Callable

from pyexec_guest import log
from pyexec_guest.keeper.loop import Loop

GULP_BYTES = 1024 * 1024
LARGE_GULP_BYTES = 128 * 1024
REST_SECONDS = 0.004
DRAIN_GULPS = 64

_CAN_SPLICE = hasattr(os, "splice")


class _Buffers(threading.local):
    """One for each thread: a keeper of sandboxes reads for many executions at once."""

    def __init__(self) -> None:
        self.gulp = memoryview(bytearray(GULP_BYTES))


_buffers = _Buffers()


def readable_bytes(fd: int) -> int:
    """Return how many bytes a pipe holds."""
    count = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]


class OutputPump:
    """Reads pipes into one stream of the log.

    What arrives first is read at once. Then the pump rests for a moment, so that a program that prints line by line
    fills the pipe undisturbed and is read in few large gulps instead of many small ones.
    """

    def __init__(
        self, writer: log.StreamWriter, name: str, loop: Loop, on_output: "Callable[[str, int], None] | None" = None
    ) -> None:
        self.name = name
        self._writer = writer
        self._loop = loop
        self._on_output = on_output
        self._listening: set[int] = set()
        self._resting: set[int] = set()
        self._resume_at = 0.0
        self._large = False
        loop.add_timer(self._resume)

    @property
    def total(self) -> int:
        """Bytes seen so far, kept or not."""
        return self._writer.total

    def attach(self, fd: int) -> None:
        """Read from `fd` whenever it has something, until its end."""
        self._listening.add(fd)
        self._loop.add_reader(fd, lambda: self._gulp(fd))

    def catch_up(self) -> int:
        """Read what the pipes hold now; return how many bytes there have been by then."""
        for fd in self._listening | self._resting:
            for _gulp in range(DRAIN_GULPS):
                if not self._read(fd):
                    break
        return self.total

    def drain(self) -> None:
        """Read what the pipes hold now and let go of them, whoever still has them open."""
        for fd in self._listening | self._resting:
            for _gulp in range(DRAIN_GULPS):
                if not self._read(fd):
                    break
            self._let_go(fd)

    def close(self) -> None:
        """Drain and close the stream."""
        self.drain()
        self._writer.close()

    def _resume(self, now: float) -> "float | None":
        if not self._resting:
            return None
        if now < self._resume_at:
            return self._resume_at
        for fd in list(self._resting):
            self._resting.discard(fd)
            self.attach(fd)
        return None

    def _gulp(self, fd: int) -> None:
        size = self._read(fd)
        if size == 0:
            self._let_go(fd)
        elif size is not None and size < LARGE_GULP_BYTES:
            self._loop.remove_reader(fd)
            self._listening.discard(fd)
            self._resting.add(fd)
            self._resume_at = time.monotonic() + REST_SECONDS

    def _read(self, fd: int) -> "int | None":
        """Move one gulp; return its size, 0 at the end of the pipe, None when there is nothing yet."""
        at = self._writer.total
        try:
            size = self._splice(fd) if self._large else None
            if size is None:
                buffer = _buffers.gulp
                size = os.readv(fd, [buffer])
                self._writer.write(buffer[:size])
        except BlockingIOError:
            self._large = False
            return None
        self._large = size >= LARGE_GULP_BYTES and _CAN_SPLICE
        if size and self._on_output is not None:
            self._on_output(self.name, at)
        return size

    def _splice(self, fd: int) -> "int | None":
        """Have the kernel move a gulp; None where it would rather not, and bytes have to be carried."""
        try:
            return self._writer.splice(fd, GULP_BYTES)
        except BlockingIOError:
            raise
        except OSError:
            return None

    def _let_go(self, fd: int) -> None:
        if fd in self._listening:
            self._loop.remove_reader(fd)
        self._listening.discard(fd)
        self._resting.discard(fd)
        os.close(fd)
