"""Work that nobody has to wait for, but that is done before everything is closed."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from pyexec.domain.errors import PyexecError

_log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.05
"""After so long without anything new nobody is in the middle of a call that this would take the processor from."""

LONGEST_SECONDS = 0.5
"""Where there is no such pause. A server that is killed loses what it was given in that time."""

MOST_WAITING = 200
"""More is not kept in memory; so many at once cost each hardly more than fewer would."""

CATCH_UP_SECONDS = 10.0

Item = TypeVar("Item")


class Afterwards:
    """Gathers what it is given until there is a pause, and does it on a thread of its own.

    May be used from several threads.
    """

    def __init__(self, *, pause: float = PAUSE_SECONDS, longest: float = LONGEST_SECONDS) -> None:
        self._pause = pause
        self._longest = longest
        self._changed = threading.Condition()
        self._waiting: list[tuple[Callable[[list[Any]], object], Any]] = []
        self._first = self._latest = 0.0  # When the first and the latest of those came.
        self._given = self._done = self._hurried = 0  # How many ever were; up to which one somebody waits.
        self._thread: threading.Thread | None = None
        self._closing = False

    def do(self, work: Callable[[], object]) -> None:
        """Have something done soon."""
        self.gather(lambda _items: work(), None)

    def gather(self, work: Callable[[list[Item]], object], item: Item) -> None:
        """Have something done soon, together with all other items that wait for the same `work`, in their order.

        What fails for several is done again for each of them alone, so `work` must bear to be repeated.
        """
        with self._changed:
            self._waiting.append((work, item))
            self._given += 1
            self._latest = time.monotonic()
            if len(self._waiting) == 1:
                self._first = self._latest
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="afterwards", daemon=True)
                self._thread.start()
            elif len(self._waiting) in (1, MOST_WAITING):  # Otherwise it looks by itself, at its time.
                self._changed.notify_all()

    def catch_up(self) -> None:
        """Have all done at once that was given up to now, and wait for it; for some seconds: a database may be away."""
        with self._changed:
            wanted = self._given
            if self._done < wanted:
                self._hurried = wanted
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._done >= wanted, CATCH_UP_SECONDS)

    def close(self) -> None:
        """Do what is left, at once, and end. What is given later is done by a thread that is started anew."""
        with self._changed:
            thread = self._thread
            if thread is not None:
                self._closing = True
                self._changed.notify_all()
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while batch := self._next():
            together: dict[Callable[[list[Any]], object], list[Any]] = {}
            for work, item in batch:
                together.setdefault(work, []).append(item)
            for work, items in together.items():
                _do(work, items)
            with self._changed:
                self._done += len(batch)
                self._changed.notify_all()

    def _next(self) -> list[tuple[Callable[[list[Any]], object], Any]]:
        """Return what is due, as soon as something is; nothing once all is done and closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            while self._waiting and not self._at_once():
                left = min(self._latest + self._pause, self._first + self._longest) - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            batch, self._waiting = self._waiting, []
            if not batch:
                self._thread, self._closing = None, False
            return batch

    def _at_once(self) -> bool:
        return self._closing or self._hurried > self._done or len(self._waiting) >= MOST_WAITING


def _do(work: Callable[[list[Any]], object], items: list[Any]) -> None:
    try:
        work(items)
    except Exception as error:  # noqa: BLE001 - what follows has to be done all the same
        if len(items) > 1:
            for item in items:
                _do(work, [item])
        elif isinstance(error, PyexecError | OSError):
            _log.warning("something was not written down: %s", error)
        else:
            _log.exception("something was not written down")
