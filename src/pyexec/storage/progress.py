"""How far an execution is, as its folder tells: asked for anew each time, from the ends of its files."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from pyexec.domain.executions import STREAMS, StreamName
from pyexec.domain.progress import Progress, make_progress
from pyexec.storage import bars
from pyexec.storage.json_files import write_json
from pyexec_guest import log

WINDOW_BYTES = 64 * 1024
"""How much of the end of each stream is looked at: hundreds of states of a bar."""

_NAME = "progress.json"
_FILE_BYTES = 16 * 1024
_EVENTS_BYTES = 32 * 1024
_MARKS_OF_BARS = (b"%|", b" [", "━".encode())


def read_progress(folder: Path, *, final: bool) -> Progress | None:
    """Return how far an execution is; None for one that does not say.

    What it was told to us counts first, then the last line `::progress ...` on either stream, then bars. `final` says
    that nothing more will be written.
    """
    told = _read_told(folder)
    if told is not None:
        return told
    ends: dict[StreamName, tuple[int, bytes]] = {name: _end_of(folder, name) for name in STREAMS}
    lines: list[tuple[int, Progress]] = []
    for name, (start, data) in ends.items():
        found = bars.find_line(data, at_start=start == 0, final=final) if bars.LINE in data else None
        if found is not None:
            lines.append((_turn_of(folder, name, start + found[0]), found[1]))
    if lines:
        return max(lines, key=lambda line: line[0])[1]
    for name in ("stderr", "stdout"):
        data = ends[name][1]
        if any(mark in data for mark in _MARKS_OF_BARS) and (bar := bars.find_bar(data)) is not None:
            return bar
    return None


def write_progress(folder: Path, progress: Progress) -> None:
    """Note how far work inside a server is."""
    write_json(
        folder / _NAME, {"current": progress.current, "total": progress.total, "message": progress.message or ""}
    )


def _read_told(folder: Path) -> Progress | None:
    try:
        fd = os.open(folder / _NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            values: object = json.loads(file.read(_FILE_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    told = cast("dict[str, Any]", values)
    return make_progress(told.get("current", -1), told.get("total"), str(told.get("message") or ""))


def _end_of(folder: Path, stream: StreamName) -> tuple[int, bytes]:
    chunk = log.read(str(folder), stream, max(0, log.total(str(folder), stream) - WINDOW_BYTES), WINDOW_BYTES)
    return chunk.start, chunk.data


def _turn_of(folder: Path, stream: StreamName, position: int) -> int:
    """Return the number of the entry in the event log that a byte of a stream belongs to; later ones are larger."""
    turn = 0
    with suppress(OSError), open(folder / "events", "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _EVENTS_BYTES))
        for line in file.read(_EVENTS_BYTES).splitlines():
            entry = log.parse_event(line) or {}
            number, at = entry.get("n"), entry.get("at")
            if entry.get("k") == stream and isinstance(number, int) and isinstance(at, int) and at <= position:
                turn = number
    return turn
