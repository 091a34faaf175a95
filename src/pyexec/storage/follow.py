"""Following what an execution prints, both streams in the order they were written."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyexec.domain.cursors import Cursor
from pyexec.domain.executions import STREAMS, StreamName
from pyexec_guest import log

PIECE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Piece:
    """Raw bytes of one stream; `gap` bytes before them are no longer kept."""

    stream: StreamName
    data: bytes
    gap: int = 0


class LogFollower:
    """Remembers how far it has read; each call yields what is new.

    The event log says where a stream goes on after the other one had its turn. Within a run between two such marks
    the order is exact; bytes that have no mark yet are taken to follow what is known.
    """

    def __init__(self, folder: Path, since: Cursor | None = None) -> None:
        start = since or Cursor()
        self._folder = folder
        self._positions: dict[StreamName, int] = {"stdout": start.stdout, "stderr": start.stderr}
        self._events_offset = 0

    def new(self) -> Iterator[Piece]:
        """Yield everything that was written since the last call."""
        marks = self._new_marks()
        for stream in STREAMS:
            yield from self._up_to(stream, _next_mark(marks, stream))
        for number, (stream, _at) in enumerate(marks):
            yield from self._up_to(stream, _next_mark(marks[number + 1 :], stream))

    def _up_to(self, stream: StreamName, end: int | None) -> Iterator[Piece]:
        while end is None or self._positions[stream] < end:
            position = self._positions[stream]
            limit = PIECE_BYTES if end is None else min(PIECE_BYTES, end - position)
            chunk = log.read(str(self._folder), stream, position, limit)
            if not chunk.data:
                return
            self._positions[stream] = chunk.start + len(chunk.data)
            yield Piece(stream, chunk.data, chunk.gap)

    def _new_marks(self) -> list[tuple[StreamName, int]]:
        try:
            with open(self._folder / "events", "rb") as file:
                file.seek(self._events_offset)
                data = file.read()
        except OSError:
            return []
        complete = data[: data.rfind(b"\n") + 1]
        self._events_offset += len(complete)
        marks: list[tuple[StreamName, int]] = []
        for line in complete.splitlines():
            entry = log.parse_event(line) or {}
            kind, at = entry.get("k"), entry.get("at")
            if kind in STREAMS and isinstance(at, int):
                marks.append((kind, at))
        return marks


def _next_mark(marks: list[tuple[StreamName, int]], stream: StreamName) -> int | None:
    return next((at for name, at in marks if name == stream), None)
