"""Records made anew from the folders, which are the truth, where the index does not have them."""

import math
import threading
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from pyexec.domain.errors import DiskFullError, RecordsUnavailableError
from pyexec.domain.executions import Execution
from pyexec.sandbox.claims import ids_in
from pyexec.storage import packed
from pyexec.storage.descriptors import read_descriptor
from pyexec.storage.executions import ExecutionStore
from pyexec.storage.presence import Presence
from pyexec.storage.state_folder import StateFolder

ID_BYTES = 16
PAUSE_SECONDS = 1.0
"""How long nobody looks again for what the same servers left."""

_DIGITS = frozenset("0123456789abcdef")


class Recovery:
    """Finds what the index does not have, because a server was killed or the database lost. Blocks on the disk."""

    def __init__(self, folder: StateFolder, store: ExecutionStore, presence: Presence) -> None:
        self._folder = folder
        self._store = store
        self._presence = presence
        self._lock = threading.Lock()
        self._found: list[Path] = []  # Whom it was last done for, and when.
        self._done_at = 0.0

    def recover(self, *, before: float = math.inf) -> int:
        """Make the records of all that has a folder; return how many there were not.

        Folders that have changed since `before` (seconds since the epoch) are left alone: whoever made one may be just
        about to note it down.
        """
        everything = packed.folders_in(self._folder.executions)
        folders = (folder for folder in everything if is_id(folder.name))
        return self._add(folder.name for folder in folders if before == math.inf or changed_at(folder) < before)

    def recover_in_line(self, owner: str, active: Collection[str]) -> int:
        """Do that for what stands in an owner's line, and was handed over by a server that could not note it down.

        `active` are those that are known.
        """
        waiting = ids_in(self._folder.queue(owner)).difference(active)
        return self._add(waiting, owner) if waiting else 0

    def recover_of_killed(self) -> None:
        """Do that where a server was killed of late; whoever waits for a list waits for this, or it would lack some."""
        killed = self._presence.killed()
        if not killed:
            return
        with self._lock:
            if killed == self._found and time.monotonic() < self._done_at + PAUSE_SECONDS:
                return
            with suppress(DiskFullError, RecordsUnavailableError):  # The next one tries again.
                self.recover()
                self._presence.note(killed)
                self._found, self._done_at = self._presence.killed(), time.monotonic()

    def _add(self, names: Iterable[str], owner: str | None = None) -> int:
        """Make the records of those that have none, as far as their folders tell; of this owner, if any."""
        wanted = sorted(names)
        unknown = set(wanted) - self._store.known(wanted)
        found = [one for name in unknown if (one := read_descriptor(self._folder.execution(name))) is not None]
        mine = [one for one in found if owner is None or one.owner == owner]
        return self._store.add_missing(sorted(mine, key=_age)) if mine else 0


def is_id(text: str) -> bool:
    """Tell whether text could be the id of an execution."""
    return len(text) == 2 * ID_BYTES and set(text) <= _DIGITS


def changed_at(folder: Path) -> float:
    """Return when an execution's folder has changed, in seconds since the epoch; for one that has just gone, inf."""
    try:
        return packed.changed_at(folder)
    except OSError:
        return math.inf


def _age(execution: Execution) -> float:
    return execution.created_at
