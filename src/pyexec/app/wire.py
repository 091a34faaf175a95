"""What a client reads from stdout: whole messages, one a line, and nothing else."""

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:  # Python 3.11 has no name for it.
    from _typeshed import ReadableBuffer

STDOUT = 1
STDERR = 2

# Line ends to Unicode, and to readers that split as it says. They can only stand inside JSON strings, which may write
# them as escapes just as well.
_ESCAPES = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))


class _Wire(io.BufferedIOBase):
    """Writes protocol messages to the client. What arrives is UTF-8 and never ends inside a character."""

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._file = os.fdopen(fd, "wb")

    def writable(self) -> bool:
        return True

    def write(self, buffer: "ReadableBuffer", /) -> int:
        data = bytes(buffer)
        escaped = data
        if not data.isascii():
            for character, escape in _ESCAPES:
                escaped = escaped.replace(character, escape)
        self._file.write(escaped)
        return len(data)

    def flush(self) -> None:
        self._file.flush()


class _Stdout(io.TextIOBase):
    """Stands in for `sys.stdout`: the protocol takes its `buffer`, and whoever prints lands on stderr."""

    def __init__(self, wire: _Wire) -> None:
        super().__init__()
        self.buffer = wire

    def write(self, text: str, /) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def claim_stdout() -> None:
    """Keep stdout for the protocol: from now on prints, and what children inherit, go to stderr."""
    wire = _Wire(os.dup(STDOUT))
    os.dup2(STDERR, STDOUT)
    sys.stdout = cast("TextIO", _Stdout(wire))
