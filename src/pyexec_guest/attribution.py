"""Which turn something belongs to that a thread does."""

import concurrent.futures.thread
import contextvars
import threading
from collections.abc import Callable
from typing import Any

TURN_BYTES = 48 * 1024 * 1024
"""How much the events of one turn may weigh together; what comes after that is counted and left out."""


class Turn:
    """One request, until its terminal frame is sent."""

    def __init__(self, turn_id: str) -> None:
        self.id = turn_id
        self.number = 0
        self.room = TURN_BYTES
        self.left_out = 0
        self.late = 0
        self._lock = threading.Lock()

    def next(self) -> int:
        """Return the number of the next frame."""
        with self._lock:
            self.number += 1
            return self.number


_turn: "contextvars.ContextVar[Turn | None]" = contextvars.ContextVar("pyexec_turn", default=None)


class Threads:
    """Knows for which turn a thread works.

    That is the turn that handed it the work, where it is a pool or an event loop that does work for others; else the
    turn in which it was started: a thread that was there when a turn began belongs to an earlier one.
    """

    def __init__(self) -> None:
        self._origin: dict[int, Turn] = {}
        self._main = threading.main_thread().ident
        _carry_context()

    def begin(self, turn: Turn, last: "Turn | None") -> None:
        """Note who is there, before `turn` begins after `last`."""
        _turn.set(turn)
        if threading.active_count() == 1:
            self._origin.clear()
            return
        alive = {thread.ident for thread in threading.enumerate() if thread.ident is not None}
        self._origin = {ident: origin for ident, origin in self._origin.items() if ident in alive}
        if last is not None:
            for ident in alive:
                self._origin.setdefault(ident, last)

    def turn_of_this(self, current: "Turn | None") -> "Turn | None":
        """Return the turn that the calling thread works for."""
        ident = threading.get_ident()
        if ident == self._main:
            return current
        return _turn.get() or self._origin.get(ident, current)


def _carry_context() -> None:
    """Have thread pools run what they are given in the context it was given in, as event loops do."""
    pool: Any = concurrent.futures.thread.ThreadPoolExecutor
    plain: Callable[..., Any] = pool.submit
    if hasattr(plain, "__wrapped__"):
        return

    def submit(self: Any, fn: "Callable[..., Any]", /, *args: Any, **options: Any) -> Any:
        return plain(self, contextvars.copy_context().run, fn, *args, **options)

    submit.__doc__ = plain.__doc__
    submit.__wrapped__ = plain  # type: ignore[attr-defined]
    pool.submit = submit
