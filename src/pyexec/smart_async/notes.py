"""Writing down how far jobs are: by one thread, a few times a second, however often a job tells."""

import threading
import time
from typing import Protocol

PAUSE_SECONDS = 0.1


class Telling(Protocol):
    """Something whose progress is to be written down."""

    def note(self) -> None:
        """Write down how far it is by now."""
        ...


class Notes:
    """Calls `note` soon after each telling, in a thread of its own: neither work nor event loop waits for a disk."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[Telling, None] = {}
        self._thread: threading.Thread | None = None

    def tell(self, job: Telling) -> None:
        """Have it written down; may be called from any thread."""
        with self._changed:
            self._waiting[job] = None
            if self._thread is None or not self._thread.is_alive():  # It does not come along into a fork.
                self._thread = threading.Thread(target=self._work, name="smart_async notes", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                jobs, self._waiting = self._waiting, {}
            for job in jobs:
                job.note()
            time.sleep(PAUSE_SECONDS)


NOTES = Notes()
