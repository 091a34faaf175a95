"""Watching the sessions that nobody uses: what they still say, and their end."""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pyexec.sandbox.guarding import Loop
from pyexec.walls.bubblewrap.sessions.live import LiveSession

LOOK_SECONDS = 1.0
_SPEAKS_LATE = ("stdout", "stderr", "display")


class Sitter:
    """Listens to idle sessions, all on one thread. Whoever starts or stops that does it at once, on any thread.

    Args:
        on_end: Hears of one that has ended by itself, or whose guest said what none of ours says: then why.
        on_look: Called once a second.
    """

    def __init__(self, on_end: Callable[[LiveSession, str | None], None], on_look: Callable[[], None]) -> None:
        self._on_end = on_end
        self._on_look = on_look
        # Not held while `on_end` is called, which takes locks that others have when they call us.
        self._lock = threading.Lock()
        self._loop = Loop(lock=self._lock)
        self._woken, self._waking = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._loop.add_reader(self._woken, self._on_wake)
        self._closing = False
        self._sitting: dict[LiveSession, set[int]] = {}
        self._ended: list[tuple[LiveSession, str | None]] = []
        self._thread = threading.Thread(target=self._work, name="sessions")
        self._thread.start()

    def sit(self, live: LiveSession) -> None:
        """Watch a session from now on."""
        with self._lock:
            self._sit(live)

    def rise(self, live: LiveSession) -> None:
        """Watch it no more. That it has ended by itself may still be told."""
        with self._lock:
            self._rise(live)

    def close(self) -> None:
        """Stop watching; blocks."""
        self._closing = True
        with suppress(BlockingIOError):
            os.write(self._waking, b"\0")
        self._thread.join()
        self._loop.close()
        os.close(self._woken)
        os.close(self._waking)

    # -- on its own thread -----------------------------------------------------------------------------------------

    def _work(self) -> None:
        look_at = time.monotonic() + LOOK_SECONDS
        while not self._closing:
            self._loop.run_until(lambda: self._closing or bool(self._ended), look_at)
            while self._ended:
                self._on_end(*self._ended.pop())
            if time.monotonic() >= look_at:
                self._on_look()
                look_at = time.monotonic() + LOOK_SECONDS

    def _on_wake(self) -> None:
        os.read(self._woken, 4096)

    # -- with the lock ---------------------------------------------------------------------------------------------

    def _sit(self, live: LiveSession) -> None:
        self._sitting[live] = fds = {*live.box.sandbox.output, live.box.sandbox.news}
        live.connection.listen(self._loop, lambda frame: self._take(live, frame), lambda why: self._gone(live, why))
        for fd in fds:
            self._loop.add_reader(fd, lambda fd=fd: self._on_readable(live, fd))

    def _rise(self, live: LiveSession) -> None:
        fds = self._sitting.pop(live, None)
        if fds is None:
            return
        live.connection.leave()
        for fd in fds:
            self._loop.remove_reader(fd)

    def _on_readable(self, live: LiveSession, fd: int) -> None:
        if fd == live.box.sandbox.news:
            self._gone(live, None)
        elif not live.drain(fd):
            self._loop.remove_reader(fd)
            self._sitting[live].discard(fd)

    def _gone(self, live: LiveSession, why: str | None) -> None:
        if live in self._sitting:
            self._rise(live)
            self._ended.append((live, why))

    def _take(self, live: LiveSession, frame: dict[str, Any]) -> None:
        if frame.get("t") == "done" and frame.get("turn") in live.turns and isinstance(frame.get("info"), dict):
            return  # An answer that came too late for whoever asked.
        if frame.get("t") != "late" or frame.get("turn") not in live.turns or frame.get("k") not in _SPEAKS_LATE:
            self._gone(live, f"a frame of type {str(frame.get('t'))[:40]!r} between turns")
            return
        live.say_late(frame, len(str(frame)))
