"""Standard input, output and error of a turn.

What is printed goes straight into the pipes of this process, by the same descriptors that its children and its C code
use, so no order is lost and nothing is lost when the process ends badly. Only what threads of an earlier turn print
goes another way, so that it can be told apart.
"""

import builtins
import ctypes
import io
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO, TextIO, cast

LATE_CHARACTERS = 64 * 1024
NO_INPUT = "input() has nobody to answer it: no stdin was given. Pass the text as stdin."
INPUT_USED_UP = "input() has read all of the stdin that was given."

Late = Callable[[str, str], bool]
"""Takes a stream's name and a text; tells whether it has taken care of it, because it comes late."""


class Stream(io.TextIOWrapper):
    """A text stream onto one of the standard descriptors."""

    def __init__(self, fd: int, name: str, late: Late) -> None:
        pipe = io.BufferedWriter(io.FileIO(fd, "wb", closefd=False))
        super().__init__(pipe, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        self._stream_name = name
        self._late = late

    def write(self, text: str, /) -> int:
        """Write text to the pipe; or elsewhere, when it comes from a thread whose turn is over."""
        if self._late(self._stream_name, text[:LATE_CHARACTERS]):
            return len(text)
        return super().write(text)

    def close(self) -> None:
        """Stay open: later turns print too."""
        self.flush()


class Streams:
    """The standard streams of this process, in order again at the beginning of each turn."""

    def __init__(self, late: Late) -> None:
        self._late = late
        # Out of reach of programs that close or turn away the standard descriptors.
        self._kept = [os.dup(fd) for fd in (1, 2)]
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._libc: Any = ctypes.CDLL(None)
        _buffer_by_line(self._libc)
        self._fflush: Callable[[None], int] = self._libc.fflush
        self._given = False
        self._kept_stdin = True
        self._next: TextIO | None = None
        self._source: TextIO | None = None
        self._raw_input: Callable[[object], str] = builtins.input
        self._out, self._err = Stream(1, "stdout", late), Stream(2, "stderr", late)
        self._use()
        builtins.input = self._input
        os.register_at_fork(before=self._flush_own)  # Or both copies would print what is still held back.

    def begin(self, stdin: "str | bool | None") -> None:
        """Make ready for a turn: `stdin` is the text that may be read; True leaves the descriptor as it is."""
        for fd, kept in zip((1, 2), self._kept, strict=True):
            os.dup2(kept, fd)
        self._use()
        self._given = stdin is not None and stdin is not False
        if stdin is not True and (stdin or self._next is None):
            self._open_stdin(stdin or "")
        sys.stdin = self._source = self._next or _standard_input()
        self._next = None
        self._kept_stdin = stdin is True

    def get_ready(self) -> None:
        """Do ahead, between two turns, what the next one takes time for."""
        if not self._kept_stdin:
            os.dup2(self._null, 0)
            self._next = _standard_input()

    def flush(self) -> None:
        """Have everything that was printed lie in the pipes."""
        for stream, own in ((sys.stdout, self._out), (sys.stderr, self._err)):
            if stream is not own:
                with suppress(Exception):  # It is the program's own.
                    stream.flush()
        self._flush_own()
        self._fflush(None)

    def tell(self, text: str) -> None:
        """Write to stderr, whatever the program has made of it."""
        with suppress(OSError), open(self._kept[1], "wb", closefd=False) as file:
            file.write(text.encode("utf-8", "backslashreplace"))

    def _open_stdin(self, text: str) -> None:
        """Have descriptor 0 read a text; nothing where the program has left no descriptor or memory to hold it."""
        os.dup2(self._null, 0)
        if text:
            with suppress(OSError, MemoryError), _memory_file() as file:
                file.write(text.encode("utf-8", "surrogateescape"))
                file.seek(0)
                os.dup2(file.fileno(), 0)

    def _use(self) -> None:
        sys.stdout = sys.__stdout__ = cast("TextIO", self._out)
        sys.stderr = sys.__stderr__ = cast("TextIO", self._err)

    def _flush_own(self) -> None:
        for stream in (self._out, self._err):
            with suppress(Exception):
                stream.flush()

    def _input(self, prompt: object = "", /) -> str:
        if self._source is None or sys.stdin is not self._source:
            return self._raw_input(prompt)  # The program has brought its own.
        if prompt != "":
            print(prompt, end="", flush=True)  # noqa: T201 - what input() does
        line = self._source.readline()
        if not line:
            raise EOFError(INPUT_USED_UP if self._given else NO_INPUT)
        return line.removesuffix("\n")


def _buffer_by_line(libc: Any) -> None:
    """Have C code's output come line by line too, in its place among the rest."""
    with suppress(ValueError, AttributeError):
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, 1, ctypes.c_size_t(0))


def _standard_input() -> TextIO:
    reader = io.BufferedReader(io.FileIO(0, closefd=False))
    return cast("TextIO", io.TextIOWrapper(reader, encoding="utf-8", errors="surrogateescape"))


def _memory_file() -> BinaryIO:
    """Return a file that has no name, and where possible no disk either, which may be full."""
    if hasattr(os, "memfd_create"):
        return cast("BinaryIO", os.fdopen(os.memfd_create("stdin"), "w+b"))
    return cast("BinaryIO", tempfile.TemporaryFile())


def flush_standard() -> None:
    """Have everything that was printed lie in the pipes, for a process that ends without its interpreter."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    libc: Any = ctypes.CDLL(None)
    libc.fflush(None)
