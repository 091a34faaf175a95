"""The event log of one execution, as files that are true at any moment.

Each output stream is a row of plain files that hold its raw bytes:

    stdout                            the head, from byte 0
    stdout.00000000000026214400       a segment of the tail; its name says at which byte of the stream it begins

Segments are only ever appended to, and the oldest is deleted when the tail grows past its share, so a reader never
sees a byte in the wrong place, whoever is killed when. Bytes that fit nowhere (the middle of a long stream, a full
disk) leave a gap between two names. `events` is JSON lines, numbered by `n`, that say what happened when: an entry
of kind `stdout` or `stderr` says that the stream continues at byte `at` from time `t` on.
"""

import errno
import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

HEAD_BYTES = 25 * 1024 * 1024
TAIL_BYTES = 25 * 1024 * 1024
SEGMENTS = 8
MAX_EVENTS_BYTES = 8 * 1024 * 1024
OUTPUT_EVENT_SECONDS = 1.0
COARSE_EVENT_SECONDS = 60.0
STREAMS = ("stdout", "stderr")
EVENTS = "events"


class Span(NamedTuple):
    """One file of a stream: the bytes of the stream from `start` up to `end` lie in `name`."""

    start: int
    end: int
    name: str


class Chunk(NamedTuple):
    """Bytes of a stream from `start` on; `gap` bytes before `start` were asked for and are no longer kept."""

    start: int
    data: bytes
    gap: int


class StreamWriter:
    """Appends to one stream; keeps its head and its tail, counts everything."""

    def __init__(self, folder: str, name: str, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._folder = folder
        self._name = name
        self._head_bytes = max(1, head_bytes)
        self._segment_bytes = max(1, tail_bytes // SEGMENTS)
        self._segments: list[str] = []
        self.total = 0
        self.dropped = 0
        self._room: int = self._head_bytes
        self._fd = -1
        try:
            self._fd = _write_to(os.path.join(folder, name))
        except OSError:
            self._room = 0  # No room on the disk for a file: what is printed is counted, and kept once there is.

    def write(self, data: memoryview) -> None:
        """Append `data`. A full disk drops what does not fit and goes on counting."""
        while data:
            if self._room == 0 and not self._next_segment():
                self._drop(len(data))
                return
            try:
                written = os.write(self._fd, data[: self._room])
            except OSError:
                self._discard_empty_segment()
                self._drop(len(data))
                return
            self.total += written
            self._room -= written
            data = data[written:]
            self._drop_oldest()

    def splice(self, pipe: int, limit: int) -> int:
        """Move up to `limit` bytes from a pipe into the file without looking at them; return how many.

        Raises:
            OSError: It cannot be done here or now; reading and `write` do.
        """
        if self._room == 0 and not self._next_segment():
            raise OSError(errno.ENOSPC, "no room for another segment")
        moved = os.splice(pipe, self._fd, min(limit, self._room))
        self.total += moved
        self._room -= moved
        self._drop_oldest()
        return moved

    def close(self) -> None:
        """Close the open file; a segment that nothing came for is taken away."""
        self._discard_empty_segment()
        self._close_file()

    def _close_file(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _drop_oldest(self) -> None:
        if len(self._segments) > SEGMENTS:
            os.unlink(self._segments.pop(0))

    def _drop(self, size: int) -> None:
        self.total += size
        self.dropped += size
        self._room = 0  # What follows a gap needs a name that says where it begins.

    def _next_segment(self) -> bool:
        path = os.path.join(self._folder, f"{self._name}.{self.total:020d}")
        try:
            fd = _write_to(path)
        except OSError:
            return False
        self._close_file()
        self._fd = fd
        self._segments.append(path)
        self._room = self._segment_bytes
        return True

    def _discard_empty_segment(self) -> None:
        if self._segments and self._room == self._segment_bytes:
            os.unlink(self._segments.pop())


class EventWriter:
    """Appends numbered entries to `events`; coarse once the file is large.

    Args:
        folder: Where that lies; None: nowhere before `open`, and what is noted until then is held in memory.
    """

    def __init__(self, folder: "str | None") -> None:
        self._held: list[dict[str, Any]] = []
        self._fd = -1
        self._size = 0
        self._number = 0
        self._torn = False
        self._last_stream = ""
        self._last_time = 0.0
        if folder is not None:
            self.open(folder)

    @property
    def held(self) -> bytes:
        """What would be in the file by now, as long as there is none."""
        return b"".join(map(_line, self._held))

    def open(self, folder: str) -> None:
        """Write into a folder from now on; what is held comes first."""
        self._fd = _append_to(os.path.join(folder, EVENTS))
        held = self.held
        self._held = []
        if held:
            self._write(held)

    def output(self, stream: str, at: int, now: float) -> None:
        """Note that `stream` continues at byte `at`, when that says something new."""
        fine = self._size < MAX_EVENTS_BYTES
        pause = OUTPUT_EVENT_SECONDS if fine else COARSE_EVENT_SECONDS
        if (fine and stream != self._last_stream) or now - self._last_time >= pause:
            self._last_stream = stream
            self._last_time = now
            self.note(stream, now, at=at)

    def note(self, kind: str, now: float, **fields: Any) -> None:
        """Append one entry; a full disk loses it, and nothing else."""
        self._number += 1
        entry = {"n": self._number, "t": round(now, 3), "k": kind, **fields}
        if self._fd < 0:
            self._held.append(entry)
            return
        # A line that a full disk cut short must not swallow the one that follows it.
        self._write((b"\n" if self._torn else b"") + _line(entry))

    def close(self) -> None:
        """Close the file, if there is one."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, data: bytes) -> None:
        try:
            written = os.write(self._fd, data)
        except OSError:
            return
        self._size += written
        self._torn = written < len(data)


def _line(entry: "dict[str, Any]") -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode("ascii") + b"\n"


def _write_to(path: str) -> int:
    # One writer only, and no O_APPEND, into which the kernel does not splice.
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)


def add_line(folder: str, stream: str, text: str) -> None:
    """Append a line to a stream that nobody else writes to any more, or that there is not yet.

    Raises:
        OSError: It cannot be written.
    """
    fd = _append_to(os.path.join(folder, stream))
    try:
        os.write(fd, f"{text}\n".encode())
    finally:
        os.close(fd)


def _append_to(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def spans(folder: str, stream: str) -> "list[Span]":
    """Return where the kept bytes of `stream` lie, in order."""
    found: list[Span] = []
    prefix = stream + "."
    try:
        names = os.listdir(folder)
    except OSError:
        return found
    for name in names:
        if name == stream:
            start = 0
        elif name.startswith(prefix) and name[len(prefix) :].isdecimal():
            start = int(name[len(prefix) :])
        else:
            continue
        try:
            size = os.stat(os.path.join(folder, name)).st_size
        except OSError:
            continue
        if size or start == 0:
            found.append(Span(start, start + size, name))
    found.sort()
    return found


def total(folder: str, stream: str) -> int:
    """Return how many bytes `stream` has had, as far as what is kept tells."""
    kept = spans(folder, stream)
    return kept[-1].end if kept else 0


def read(folder: str, stream: str, offset: int, limit: int) -> Chunk:
    """Read up to `limit` bytes of `stream` from byte `offset` on, or from where the kept bytes go on after it.

    The bytes are contiguous: reading stops at a gap.
    """
    for _attempt in range(8):
        chunk = _read_once(folder, stream, offset, limit)
        if chunk is not None:
            return chunk
    return Chunk(offset, b"", 0)


def _read_once(folder: str, stream: str, offset: int, limit: int) -> "Chunk | None":
    kept = [span for span in spans(folder, stream) if span.end > offset]
    if not kept:
        return Chunk(offset, b"", 0)
    start = max(offset, kept[0].start)
    parts: list[bytes] = []
    position = start
    for span in kept:
        if span.start > position or position - start >= limit:
            break
        wanted = min(span.end - position, limit - (position - start))
        try:
            with open(os.path.join(folder, span.name), "rb") as file:
                file.seek(position - span.start)
                part = file.read(wanted)
        except FileNotFoundError:
            return None  # The writer deleted this segment since it was listed: look again.
        parts.append(part)
        position += len(part)
        if len(part) < wanted:
            break
    return Chunk(start, b"".join(parts), start - offset)


def events(folder: str) -> "Iterator[dict[str, Any]]":
    """Yield the entries of the log, but for lines that were cut off."""
    try:
        with open(os.path.join(folder, EVENTS), "rb") as file:
            for line in file:
                entry = parse_event(line)
                if entry is not None:
                    yield entry
    except OSError:
        return


def parse_event(line: bytes) -> "dict[str, Any] | None":
    """Return one entry, or None for a line that was cut off."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return cast("dict[str, Any]", entry) if isinstance(entry, dict) else None
