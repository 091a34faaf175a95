"""Turns that are over in a moment, as most are: nothing is written before their end, and then one file."""

import json
import os
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyexec.sandbox.claims import LOCK
from pyexec.sandbox.guarding import (
    EVENTS,
    FRAMES,
    OUTCOME,
    STARTED,
    STREAMS,
    Ending,
    Orders,
    encode,
    ended_frame,
    next_in_line,
    note_ended,
    outcome_of,
    wake,
)
from pyexec.walls.bubblewrap.beginning import UNNOTED, Begun
from pyexec.walls.bubblewrap.endings import used_since
from pyexec.walls.bubblewrap.stays import House

MOMENT_SECONDS = 0.008
MOST_PRINTED = 16 * 1024
"""Who prints more has a folder, where that is read piece by piece."""


def ends_in_a_moment(begun: Begun) -> bool:
    """Listen for a moment; tell whether the turn has ended, and as all turns should.

    It has not where its guest has gone, says what needs a folder, or what it must not. What the server says meanwhile
    has time until then.
    """
    link, loop = begun.link, begun.loop
    stirred: list[bool] = []
    news = begun.stay.box.sandbox.news
    loop.add_reader(news, lambda: stirred.append(True))
    timeout: float = begun.orders["timeout"] or MOMENT_SECONDS
    loop.run_until(
        lambda: link.ended or link.has_more or not link.is_open or bool(stirred),
        time.monotonic() + min(timeout, MOMENT_SECONDS),
    )
    loop.remove_reader(news)
    ended = link.ended and not link.has_more and link.is_open and begun.stay.ended_by() is None
    return ended and max(link.at) <= MOST_PRINTED


def note_end(begun: Begun, house: House, server: socket.socket, said: Orders) -> bool:
    """Tell the server of a turn that has ended, then note it down; tell whether that went well.

    The server makes its answer of it meanwhile, and gives that when it hears that all is noted. `said` is where it says
    what else there is to be noted.
    """
    heard, note = False, {"t": "noted", "again": begun.stay.lasts}
    try:
        ended = _end(begun)
        heard = _say(server, _told(ended))
        told = _let_go(begun, house, ended)
        begun.hear_files(said)
        if told is not None:
            note["told"] = told
        house.packer.pack(begun.folder, _files(begun, ended))
    except OSError as error:
        note = {"t": "failed", "why": error.strerror}
        begun.leave(house, alive=False, reason=UNNOTED)
    finally:
        begun.leave_lines()  # Before it is told: who hears it may ask for the next turn.
        begun.loop.close()
    heard = _say(server, encode(note)) and heard
    for folder, _entry, slots in begun.orders["lines"]:
        for execution_id in next_in_line(folder, slots):
            with suppress(OSError):  # It has ended, or will look by itself.
                wake(os.path.dirname(begun.orders["folder"]), execution_id)
    begun.stay.close()
    house.packer.get_ready()
    return heard and note.get("again") is True


@dataclass(frozen=True, slots=True)
class _Ended:
    """What is known of a turn that has ended."""

    started: dict[str, Any]
    outcome: dict[str, Any]
    printed: dict[str, bytes]
    frames: list[dict[str, Any]] | None


def _end(begun: Begun) -> _Ended:
    box, link = begun.stay.box, begun.link
    ending = Ending(cause="exited", exit_code=link.exit_code)
    # All of it is in the pipes yet.
    printed = {
        name: os.read(fd, MOST_PRINTED) if size else b""
        for name, fd, size in zip(STREAMS, box.sandbox.output, link.at, strict=True)
    }
    usage = used_since(box, ending, begun.before)
    sizes = {name: len(data) for name, data in printed.items()}
    outcome = outcome_of(ending, usage, begun.started["started_at"], sizes)
    return _Ended(begun.started, outcome, printed, link.kept)


def _let_go(begun: Begun, house: House, ended: _Ended) -> str | None:
    """Let others have the sandbox, where its guest has said no more than it may; return what is to be told of that."""
    link = begun.link
    link.close(keep=True)
    told = begun.leave(house, alive=link.broken is None, reason=link.fault)
    if told is not None:
        ended.outcome["reason"] = told if ended.outcome["reason"] is None else f"{ended.outcome['reason']} {told}"
    return told


def _told(ended: _Ended) -> bytes:
    """Return what the server is told, which is all there is, or where that is too long enough to look for it."""
    said = {"outcome": ended.outcome, "started": ended.started, "noting": True}
    whole: bytes | None = None
    if ended.frames is not None:
        output = {name: data.decode("latin-1") for name, data in ended.printed.items() if data}
        whole = ended_frame({**said, "frames": ended.frames, **output})
    return whole or ended_frame(said) or b""


def _files(begun: Begun, ended: _Ended) -> dict[str, bytes]:
    """Return what is in the folder of an execution."""
    for name, data in ended.printed.items():
        if data:
            begun.events.output(name, 0, ended.outcome["ended_at"])
    note_ended(begun.events, ended.outcome)
    return {
        LOCK: b"",
        **{name: text.encode("utf-8", "surrogatepass") for name, text in begun.orders["files"]},
        EVENTS: begun.events.held,
        FRAMES: begun.link.held,
        **ended.printed,
        STARTED: _as_json(ended.started),
        OUTCOME: _as_json(ended.outcome),
    }


def _say(server: socket.socket, words: bytes) -> bool:
    try:
        server.sendall(words)
    except OSError:  # It may have gone meanwhile.
        return False
    return True


def _as_json(values: dict[str, Any]) -> bytes:
    return json.dumps(values, separators=(",", ":")).encode("ascii")
