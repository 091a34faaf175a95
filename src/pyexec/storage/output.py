"""Reading what an execution printed, as text that fits an answer."""

import codecs
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pyexec.domain.cursors import Cursor
from pyexec.domain.executions import STREAMS, StreamName
from pyexec.storage.packed import packed_bytes
from pyexec_guest import log

WINDOW_BYTES = 2 * 1024 * 1024
"""How much of a stream is looked at from either end; progress bars fold to far less than their bytes."""

LONGEST_CHARACTER = 4
"""Even the smallest answer carries a character of each stream, or a reader would never get on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamText:
    """A stream's text from a cursor on, and where to read on.

    `omitted` bytes lie between the head and the tail of `text`, at the line that says so; reading from `next_offset`
    brings them. `gap` bytes before the beginning of `text` are no longer kept. Sizes are bytes of the raw stream.
    """

    text: str
    next_offset: int
    total: int
    omitted: int = 0
    gap: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Both streams."""

    stdout: StreamText
    stderr: StreamText

    @property
    def next_cursor(self) -> Cursor:
        """Where reading goes on."""
        return Cursor(stdout=self.stdout.next_offset, stderr=self.stderr.next_offset)

    @property
    def truncated(self) -> bool:
        """Whether something that is asked for is not in the text."""
        return bool(self.stdout.omitted or self.stderr.omitted or self.stdout.gap or self.stderr.gap)


def read_output(folder: Path, *, since: Cursor | None, max_bytes: int, final: bool) -> Output:
    """Read both streams from `since` on; together they are at most about `max_bytes` long.

    Without `since` a long stream is shown by its head and its tail; with it, as much as fits from there on.
    `final` says that nothing more will be written, so that a cut-off character at the end is not waited for.
    """
    return _shown(_Kept(str(folder)), since or Cursor(), max_bytes, tail=since is None, final=final)


def show_output(stdout: bytes, stderr: bytes, *, max_bytes: int) -> Output:
    """Do the same with all that something has printed, which is at most `WINDOW_BYTES` for each stream."""
    return _shown(_Whole({"stdout": stdout, "stderr": stderr}), Cursor(), max_bytes, tail=True, final=True)


class _Streams(Protocol):
    """Where both streams can be read."""

    def total(self, stream: StreamName) -> int:
        """Return how many bytes there have been."""
        ...

    def read(self, stream: StreamName, offset: int, limit: int) -> log.Chunk:
        """See `log.read`."""
        ...


@dataclass(frozen=True, slots=True)
class _Kept:
    """In the folder of an execution."""

    folder: str

    def total(self, stream: StreamName) -> int:
        return log.total(self.folder, stream)

    def read(self, stream: StreamName, offset: int, limit: int) -> log.Chunk:
        return log.read(self.folder, stream, offset, limit)


@dataclass(frozen=True, slots=True)
class _Whole:
    """In memory."""

    streams: Mapping[StreamName, bytes]

    def total(self, stream: StreamName) -> int:
        return len(self.streams[stream])

    def read(self, stream: StreamName, offset: int, limit: int) -> log.Chunk:
        return log.Chunk(offset, self.streams[stream][offset : offset + limit], 0)


def _shown(streams: _Streams, start: Cursor, max_bytes: int, *, tail: bool, final: bool) -> Output:
    sizes = {name: streams.total(name) for name in STREAMS}
    wanted = {"stdout": sizes["stdout"] - start.stdout, "stderr": sizes["stderr"] - start.stderr}
    err_share = max(max_bytes // 3, max_bytes - max(0, wanted["stdout"]), LONGEST_CHARACTER)
    err_budget = min(err_share, max(0, wanted["stderr"]))
    budgets = {"stdout": max(max_bytes - err_budget, LONGEST_CHARACTER), "stderr": err_share}

    def text(name: StreamName, offset: int) -> StreamText:
        return _read_stream(streams, name, offset, budgets[name], tail=tail, final=final)

    return Output(stdout=text("stdout", start.stdout), stderr=text("stderr", start.stderr))


def read_preparation(folder: Path) -> str:
    """Return what the commands said that prepared an execution, from the beginning."""
    return log.read(str(folder), "prepare", 0, WINDOW_BYTES).data.decode("utf-8", "replace")


def count_events(folder: Path) -> dict[str, int]:
    """Return how many entries of each kind the event log has."""
    counts: dict[str, int] = {}
    for entry in log.events(str(folder)):
        kind = str(entry.get("k"))
        counts[kind] = counts.get(kind, 0) + 1
    return counts


def log_bytes(folder: Path) -> int:
    """Return how much disk an execution's folder takes."""
    total = packed_bytes(folder)
    for root, _folders, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # It may be removed meanwhile.
                total += os.lstat(os.path.join(root, name)).st_size
    return total


def _read_stream(
    streams: _Streams, stream: StreamName, offset: int, budget: int, *, tail: bool, final: bool
) -> StreamText:
    chunk = streams.read(stream, offset, WINDOW_BYTES)
    end = chunk.start + len(chunk.data)
    total = max(end, streams.total(stream))
    # The end of the window may lie inside a character, and so may the end of what a running program has written.
    whole = final and end == total
    data = chunk.data if whole else chunk.data[: len(chunk.data) - _incomplete(chunk.data)]
    shown = show(data)
    if end == total and len(shown) <= budget:
        return StreamText(text=shown.decode("utf-8"), next_offset=chunk.start + len(data), total=total, gap=chunk.gap)
    head, used = take_head(data, budget // 2 if tail else budget)
    next_offset = chunk.start + used
    text = head.decode("utf-8")
    omitted = total - next_offset
    if tail:
        window = max(next_offset, total - WINDOW_BYTES)
        last = streams.read(stream, window, WINDOW_BYTES)
        torn = 0 if last.start in (0, next_offset) else _continuation(last.data)
        ending, skipped = take_tail(last.data[torn:], budget - len(head))
        omitted = max(0, last.start + torn + skipped - next_offset)
        text += f"\n[... {omitted} bytes left out ...]\n" + ending.decode("utf-8")
    return StreamText(text=text, next_offset=next_offset, total=total, omitted=omitted, gap=chunk.gap)


def show(data: bytes) -> bytes:
    """Return what a reader sees of raw output, as UTF-8: bytes that are none become replacement characters."""
    return fold(data).decode("utf-8", "replace").encode("utf-8")


def fold(data: bytes) -> bytes:
    """Return what a terminal would still show of lines that were written over with carriage returns."""
    if b"\r" not in data:
        return data
    return b"\n".join(_fold_line(line) for line in data.split(b"\n"))


def _fold_line(line: bytes) -> bytes:
    if b"\r" not in line:
        return line
    return next((part for part in reversed(line.split(b"\r")) if part), b"")


def take_head(data: bytes, budget: int) -> tuple[bytes, int]:
    """Return text from the beginning that fits, as shown, and how many bytes of `data` it stands for."""
    parts: list[bytes] = []
    position = 0
    room = budget
    while position < len(data):
        newline = data.find(b"\n", position)
        end = len(data) if newline < 0 else newline + 1
        line = data[position:end]
        shown = show(line)
        if len(shown) > room:
            if not _is_bar(line):
                used, shown = _longest_beginning(line, room)
                parts.append(shown)
                position += used
            elif not parts and room:  # One bar longer than the room: the end of its last state must do.
                parts.append(_longest_end(fold(line), room)[1])
                position = end
            break
        parts.append(shown)
        room -= len(shown)
        position = end
    return b"".join(parts), position


def take_tail(data: bytes, budget: int) -> tuple[bytes, int]:
    """Return text from the end that fits, as shown, and at which byte of `data` it begins."""
    parts: list[bytes] = []
    position = len(data)
    room = budget
    while position > 0:
        begin = data.rfind(b"\n", 0, position - 1) + 1
        line = data[begin:position]
        shown = show(line)
        if len(shown) > room:
            if not _is_bar(line):
                used, shown = _longest_end(line, room)
                parts.append(shown)
                position -= used
            break
        parts.append(shown)
        room -= len(shown)
        position = begin
    return b"".join(reversed(parts)), position


def _is_bar(line: bytes) -> bool:
    """Tell whether a line was written over; carriage returns at its very end only end it, as on Windows."""
    return b"\r" in line.rstrip(b"\r\n")


def _longest_beginning(line: bytes, room: int) -> tuple[int, bytes]:
    """Return how much of a line fits, and how it is shown; bytes that are no text take three times their size."""
    third = room // 3
    for size in (room, third, third + 1, third + 2, third + 3):
        part = line[:size]
        part = part[: len(part) - _incomplete(part)]
        shown = show(part)
        if part and len(shown) <= room:
            return len(part), shown
    return 0, b""


def _longest_end(line: bytes, room: int) -> tuple[int, bytes]:
    for size in (room, room // 3):
        part = line[max(0, len(line) - size) :] if size else b""
        part = part[_continuation(part) :] if len(part) < len(line) else part
        shown = show(part)
        if len(shown) <= room:
            return len(part), shown
    return 0, b""


def _incomplete(data: bytes) -> int:
    """Return how many bytes at the end begin a UTF-8 character that may still become whole."""
    for back in range(1, min(3, len(data)) + 1):
        if data[-back] >= 0xC0:
            if back > 1 and data[-back] == 0xED and data[1 - back] >= 0xA0:
                return 0  # Half a surrogate, which never becomes a character; the decoder would wait for the rest.
            try:
                _text, consumed = codecs.utf_8_decode(data[-back:], "strict", False)
            except UnicodeDecodeError:
                return 0
            return back if consumed == 0 else 0
    return 0


def _continuation(data: bytes) -> int:
    """Return how many bytes at the beginning belong to a character that began before."""
    count = 0
    while count < min(3, len(data)) and 0x80 <= data[count] < 0xC0:
        count += 1
    return count
