"""Work that nobody has to wait for, but that is done before everything is closed."""

import logging
import queue
import threading
from collections.abc import Callable

from pyexec.domain.errors import PyexecError

_log = logging.getLogger(__name__)

CATCH_UP_SECONDS = 10.0


class Afterwards:
    """Does what it is given, one after the other, on a thread of its own. May be used from several threads."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def do(self, work: Callable[[], object]) -> None:
        """Have something done soon."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="afterwards", daemon=True)
                self._thread.start()
            self._work.put(work)

    def catch_up(self) -> None:
        """Wait until all has been done that was given up to now, or for some seconds: a database may be away."""
        done = threading.Event()
        self.do(done.set)
        done.wait(CATCH_UP_SECONDS)

    def close(self) -> None:
        """Do what is left, and end. What is given later is done by a thread that is started anew."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is not None:
                self._work.put(None)
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while True:
            work = self._work.get()
            if work is None:
                return
            try:
                work()
            except (PyexecError, OSError) as error:
                _log.warning("something was not written down: %s", error)
            except Exception:  # noqa: BLE001 - what follows has to be done all the same
                _log.exception("something was not written down")
