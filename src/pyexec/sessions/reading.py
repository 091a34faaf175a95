"""Reading files of a workspace, by ranges, and telling text from all else."""

import codecs
import os
from dataclasses import dataclass

from pyexec.domain.errors import InvalidArgumentError
from pyexec.sessions.paths import Place
from pyexec.storage.beneath import open_plain

SNIFFED_BYTES = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a file, which has `size` bytes in all."""

    data: bytes
    offset: int
    size: int

    @property
    def at_end(self) -> bool:
        """Whether nothing follows."""
        return self.offset + len(self.data) >= self.size


def read_piece(root: int, place: Place, offset: int, length: int, text_length: int) -> Piece:
    """Read a part of a regular file; of one that begins as text does, no more than `text_length`.

    A file that is being written meanwhile is read as it is at each moment.

    Raises:
        InvalidArgumentError: The offset lies behind the end.
        NotPlainError: It is no regular file.
        OSError: It cannot be opened or read.
    """
    fd = open_plain(root, place.path)
    try:
        size = os.fstat(fd).st_size
        if offset > size:
            raise InvalidArgumentError(f"offset is {offset}; {place.shown} has {size} bytes.")
        wanted = min(length, size - offset)
        data = _read(fd, min(wanted, max(text_length, 1), SNIFFED_BYTES), offset)
        most = text_length if text_of(data, at_end=False) is not None else wanted
        data += _read(fd, min(most, wanted) - len(data), offset + len(data))
    finally:
        os.close(fd)
    return Piece(data=data, offset=offset, size=size)


def text_of(data: bytes, *, at_end: bool) -> str | None:
    """Return bytes as text; None where they are none. A character that is cut at the end is left out.

    Args:
        data: The bytes.
        at_end: Whether nothing follows, so that nothing can be cut.
    """
    if b"\0" in data:
        return None
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(data, final=at_end)
    except UnicodeDecodeError:
        return None
    return text if text or not data else None


def _read(fd: int, length: int, offset: int) -> bytes:
    parts: list[bytes] = []
    while length > 0 and (part := os.pread(fd, length, offset)):
        parts.append(part)
        length -= len(part)
        offset += len(part)
    return b"".join(parts)
