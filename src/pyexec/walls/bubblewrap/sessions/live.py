"""A session whose interpreter lives."""

import os
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyexec.sandbox.guarding import GuestConnection
from pyexec.storage.sessions import SessionFolder
from pyexec.walls.bubblewrap.boxes import Box
from pyexec.walls.bubblewrap.sessions.homes import Home

TURNS_REMEMBERED = 1000
STREAMS = ("stdout", "stderr")
LATE_FRAMES = 1000
LATE_BYTES = 256 * 1024


@dataclass(eq=False, kw_only=True)
class LiveSession:
    """A sandbox that stays, and what has to be known of it between two turns.

    Attributes:
        folder: The session's.
        home: Its sandbox and its workspace.
        connection: To its guest.
        lock: Says that it lives.
        prefix: The environment it runs on.
        turns: The ids of its latest turns, any of which may have left a thread that still speaks.
        late: What such threads, and programs that were left behind, have said since the latest turn.
        busy: Whether somebody speaks with its guest.
        ended: Why it has been ended, once it has.
        renewed: Whether another interpreter may follow without a word.
        size: How many bytes its files had after the latest turn.
    """

    folder: SessionFolder
    home: Home
    connection: GuestConnection
    lock: int
    prefix: Path
    started: float = field(default_factory=time.monotonic)
    used: float = field(default_factory=time.monotonic)
    turns: deque[str] = field(default_factory=lambda: deque(maxlen=TURNS_REMEMBERED))
    late: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    late_room: int = LATE_BYTES
    busy: bool = True
    ended: str | None = None
    renewed: bool = False
    size: int = 0

    @property
    def box(self) -> Box:
        """Its sandbox."""
        return self.home.box

    @property
    def owner(self) -> Path:
        """The folder of its owner's sessions."""
        return self.folder.path.parent

    def say_late(self, frame: dict[str, Any], weight: int) -> None:
        """Keep something that was said between two turns, as far as there is room."""
        if len(self.late) < LATE_FRAMES and self.late_room > 0:
            self.late_room -= weight
            self.late.append(frame)

    def take_late(self) -> list[dict[str, Any]]:
        """Return what was said since the latest turn, and forget it."""
        for fd in self.box.sandbox.output:
            self.drain(fd)
        said, self.late, self.late_room = self.late, [], LATE_BYTES
        return said

    def drain(self, fd: int) -> bool:
        """Take what programs that were left behind have printed, so that they can go on; tell whether more may come."""
        try:
            data = os.read(fd, LATE_BYTES)
        except BlockingIOError:
            return True
        if data:
            stream = STREAMS[self.box.sandbox.output.index(fd)]
            self.say_late({"t": "late", "k": stream, "text": data.decode("utf-8", "replace")}, len(data))
        return bool(data)
