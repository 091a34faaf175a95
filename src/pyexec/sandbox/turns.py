"""Making sense of what a guest says, none of which is believed.

A turn is events numbered from 1 on and one terminal frame, which has the next number; all carry the turn's id. What
does not fit is a breach: whoever runs the guest ends it.
"""

import base64
import binascii
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from pyexec.domain.turns import TURN_STATUSES, Display, Failure, LateText, Part, Turn, TurnFile
from pyexec_guest import protocol
from pyexec_guest.keeper.files import is_path_below
from pyexec_guest.keeper.guest import FRAMES

MOST_DISPLAYS = 200
MOST_LATE = 1000
MOST_NOTES = 40
MOST_PARTS = 10
MOST_FILES = 50
NAME_CHARACTERS = 200
TEXT_CHARACTERS = 4 * 1024 * 1024
VALUE_CHARACTERS = 400_000
JSON_NODES = 50_000
JSON_DEPTH = 20
_GULP_BYTES = 1024 * 1024


class BreachError(Exception):
    """The guest said something that no guest of ours says."""


class TurnReader:
    """Takes the frames of one turn."""

    def __init__(self, turn_id: str) -> None:
        self.id = turn_id
        self.info: Mapping[str, Any] | None = None
        self._number = 0
        self._displays: list[Display] = []
        self._late: list[LateText] = []
        self._kept: dict[str, str] = {}
        self._told = 0
        self._done: Mapping[str, Any] | None = None
        self._broken: str | None = None

    @property
    def ended(self) -> bool:
        """Whether the terminal frame has come."""
        return self._done is not None

    def take(self, frame: Mapping[str, Any]) -> Display | LateText | None:
        """Take one frame; return what it shows, if anything.

        Raises:
            BreachError: It does not belong here.
        """
        kind = frame.get("t")
        if frame.get("turn") != self.id:
            raise BreachError("a frame for another turn")
        if kind == "late":
            return self._take_late(frame)
        if kind not in ("event", "done"):
            raise BreachError(f"a frame of type {str(kind)[:40]!r} within a turn")
        if self.ended:
            raise BreachError("a frame after the terminal one")
        self._number += 1
        if frame.get("n") != self._number or isinstance(frame.get("n"), bool):
            raise BreachError(f"frame {str(frame.get('n'))[:40]} where {self._number} was due")
        if kind == "done":
            self._take_done(frame)
            return None
        return self._take_event(frame)

    def break_off(self, why: str) -> None:
        """Note that what follows is not taken."""
        self._broken = why

    def result(self) -> Turn:
        """Return what is known by now."""
        shown = tuple(self._displays)
        late = tuple(self._late)
        done = self._done
        if done is None:
            return Turn(displays=shown, late=late, told_bytes=self._told, broken=self._broken)
        status = done.get("status")
        return Turn(
            status=status if status in TURN_STATUSES else "refused",
            exit_code=_whole(done.get("exit_code"), 255),
            value=_text(done.get("value"), VALUE_CHARACTERS),
            value_type=_text(done.get("value_type"), NAME_CHARACTERS),
            failure=_failure(done.get("failure")),
            notes=_notes(done.get("notes")),
            displays=shown,
            late=late,
            left_out=_whole(done.get("left_out"), 2**31) or 0,
            files=_files(done.get("files"), self._kept),
            told_bytes=self._told,
            seconds=_seconds(done.get("seconds")),
            peak_memory=_whole(done.get("peak_memory"), 2**60) or 0,
            broken=self._broken,
        )

    def _take_event(self, frame: Mapping[str, Any]) -> Display | None:
        kind = frame.get("k")
        if kind == "told":
            self._told = _whole(frame.get("bytes"), TEXT_CHARACTERS) or 0
            return None
        if kind == "file":
            # A note of who writes files down, which is not the guest.
            name, kept = frame.get("name"), frame.get("as")
            if isinstance(name, str) and isinstance(kept, str):
                self._kept[name] = kept
            return None
        if kind != "display":
            raise BreachError(f"an event of kind {str(kind)[:40]!r}")
        return self._shown(frame, late=False)

    def _take_late(self, frame: Mapping[str, Any]) -> Display | LateText | None:
        if len(self._late) >= MOST_LATE:
            return None
        kind = frame.get("k")
        if kind == "display":
            return self._shown(frame, late=True)
        if kind not in ("stdout", "stderr"):
            raise BreachError(f"late news of kind {str(kind)[:40]!r}")
        said = LateText(stream=kind, text=_text(frame.get("text"), TEXT_CHARACTERS) or "")
        self._late.append(said)
        return said

    def _shown(self, frame: Mapping[str, Any], *, late: bool) -> Display | None:
        if len(self._displays) >= MOST_DISPLAYS:
            return None
        at = _positions(frame.get("at"))
        display = Display(
            number=0 if late else self._number,
            kind=_text(frame.get("kind"), NAME_CHARACTERS) or "unknown",
            parts=_parts(frame.get("data")),
            width=_whole(frame.get("width"), 2**31) or 0,
            height=_whole(frame.get("height"), 2**31) or 0,
            chart=_object(frame.get("chart")),
            table=_object(frame.get("table")),
            stdout_at=at[0],
            stderr_at=at[1],
            late=late,
        )
        self._displays.append(display)
        return display

    def _take_done(self, frame: Mapping[str, Any]) -> None:
        info = frame.get("info")
        if isinstance(info, dict):
            self.info = cast("dict[str, Any]", tidy(info))
        self._done = frame


def read_turn(folder: Path) -> Turn | None:
    """Return the turn that an execution was, as far as its keeper has written it down; None when it was none."""
    try:
        fd = os.open(folder / FRAMES, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with open(fd, "rb") as file:
        return turn_of(_frames_in(file))


def turn_of(frames: Iterable[Mapping[str, Any]]) -> Turn | None:
    """Return the turn that such frames tell, as a keeper has written them down."""
    reader: TurnReader | None = None
    try:
        for frame in frames:
            if reader is None:
                reader = TurnReader(str(frame.get("turn")))
            elif frame.get("t") == "broken":
                reader.break_off(_text(frame.get("why"), NAME_CHARACTERS) or "a breach")
                break
            elif frame.get("t") != "hello":
                reader.take(frame)
    except (BreachError, protocol.ProtocolError) as error:
        if reader is not None:
            reader.break_off(f"{error}")
    return None if reader is None else reader.result()


def _frames_in(file: BinaryIO) -> Iterator[dict[str, Any]]:
    decoder = protocol.Decoder(protocol.GUEST_FRAME + protocol.SMALL_FRAME)
    while data := file.read(_GULP_BYTES):
        yield from decoder.messages(data)


def tidy(value: Any) -> Any:
    """Return a JSON value without what breaks other readers: NaN and infinities as text, nothing deep or endless."""
    return _tidy(value, JSON_DEPTH, [JSON_NODES])


def _tidy(value: Any, depth: int, room: list[int]) -> Any:
    room[0] -= 1
    if depth < 0 or room[0] < 0:
        return None
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {_text(key, NAME_CHARACTERS) or "": _tidy(one, depth - 1, room) for key, one in items}
    if isinstance(value, list):
        return [_tidy(one, depth - 1, room) for one in cast("list[Any]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**53:
        return str(value)  # Other readers would round it.
    return _text(value, TEXT_CHARACTERS) if isinstance(value, str) else value


def _object(text: Any) -> Mapping[str, Any] | None:
    if not isinstance(text, str):
        return None
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", tidy(value)) if isinstance(value, dict) else None


def _parts(data: Any) -> tuple[Part, ...]:
    if not isinstance(data, dict):
        return ()
    parts: list[Part] = []
    for media_type, value in list(cast("dict[str, Any]", data).items())[:MOST_PARTS]:
        part = _part(media_type[:NAME_CHARACTERS], value)
        if part is not None:
            parts.append(part)
    return tuple(parts)


def _part(media_type: str, value: Any) -> Part | None:
    if not isinstance(value, dict) or not media_type.isprintable():
        return None
    fields = cast("dict[str, Any]", value)
    if isinstance(fields.get("text"), str):
        return Part(media_type=media_type, text=_text(fields["text"], TEXT_CHARACTERS))
    if isinstance(fields.get("base64"), str):
        try:
            data = base64.b64decode(fields["base64"], validate=True)
        except (binascii.Error, ValueError):
            return None
        return Part(media_type=media_type, data=data, size=len(data))
    name = _text(fields.get("file"), NAME_CHARACTERS)
    if name is None:
        return None
    return Part(media_type=media_type, file=name, size=_whole(fields.get("size"), 2**60) or 0)


def _failure(value: Any) -> Failure | None:
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    return Failure(
        type=_text(fields.get("type"), NAME_CHARACTERS) or "Exception",
        message=_text(fields.get("message"), VALUE_CHARACTERS) or "",
        traceback=_text(fields.get("traceback"), VALUE_CHARACTERS) or "",
        line=_whole(fields.get("line"), 2**31),
    )


def _notes(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    notes = (_text(one, 1000) for one in cast("list[Any]", value)[:MOST_NOTES])
    return tuple(one for one in notes if one)


def _files(value: Any, kept: Mapping[str, str]) -> tuple[TurnFile, ...]:
    if not isinstance(value, list):
        return ()
    found: list[TurnFile] = []
    for one in cast("list[Any]", value)[:MOST_FILES]:
        fields = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        path, size, change = fields.get("path"), _whole(fields.get("size"), 2**60), fields.get("change")
        if isinstance(path, str) and is_path_below(path) and size is not None and change in ("created", "changed"):
            found.append(TurnFile(path=path, size=size, change=change, kept_as=kept.get(path)))
    return tuple(found)


def _positions(value: Any) -> tuple[int, int]:
    if not isinstance(value, list):
        return 0, 0
    numbers = [_whole(one, 2**60) or 0 for one in cast("list[Any]", value)[:2]]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (0, 0)


def _text(value: Any, most: int) -> str | None:
    """Return text that every reader can take: not too long, without lone surrogates."""
    if not isinstance(value, str):
        return None
    return value[:most].encode("utf-8", "backslashreplace").decode("utf-8")


def _whole(value: Any, most: int) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        return None
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9:
        return float(value)
    return 0.0
