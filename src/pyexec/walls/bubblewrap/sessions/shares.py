"""How much the files of all sessions of one owner come to, and whether that is more than they may."""

import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyexec.domain.sessions import workspaces_full
from pyexec.storage.hostile_folders import content
from pyexec.storage.sessions import SessionFolder
from pyexec.walls.bubblewrap.workspaces import FOLDER, IMAGE

LOOK_SECONDS = 5.0
_SECTOR = 512


@dataclass(frozen=True, slots=True)
class Share:
    """How many bytes an owner's workspaces hold, and how many they may."""

    used: int
    allowed: int


class Shares:
    """Counts. May be used from several threads; blocks on the disk, mostly for some microseconds.

    Sessions that live are asked. Of the others it is noted in their folders, which are read again every few seconds,
    and before anybody is refused.

    Args:
        allowed: How many bytes the files of all sessions of one owner may come to.
    """

    def __init__(self, allowed: int) -> None:
        self._allowed = allowed
        self._kept: dict[Path, tuple[float, dict[str, int]]] = {}
        self._noting = threading.Lock()

    def of(self, owner: Path, live: Mapping[str, int]) -> Share:
        """Return the share of an owner, by the folder of their sessions; `live` is what those hold that live."""
        used = self._sum(owner, live)
        if used > self._allowed:  # Some may have been closed, or cleared out, since.
            self._kept.pop(owner, None)
            used = self._sum(owner, live)
        return Share(used, self._allowed)

    def require(self, owner: Path, live: Mapping[str, int]) -> None:
        """See that an owner has not more than they may.

        Raises:
            WorkspacesFullError: They have.
        """
        found = self.of(owner, live)
        if found.used > found.allowed:
            raise workspaces_full(found.used, found.allowed)

    def forget(self, folder: SessionFolder) -> None:
        """Have a session that does not live looked at again: somebody is about to change its files."""
        with self._noting:
            folder.forget_size()

    def _sum(self, owner: Path, live: Mapping[str, int]) -> int:
        now = time.monotonic()
        looked_at, kept = self._kept.get(owner, (0.0, {}))
        if owner not in self._kept or now - looked_at > LOOK_SECONDS:
            kept = self._kept_in(owner)
            self._kept[owner] = now, kept
        return sum(live.values()) + sum(size for name, size in kept.items() if name not in live)

    def _kept_in(self, owner: Path) -> dict[str, int]:
        try:
            names = [name for name in os.listdir(owner) if not name.startswith(".")]
        except OSError:
            return {}
        return {name: self._kept_by(SessionFolder(owner / name)) for name in names}

    def _kept_by(self, folder: SessionFolder) -> int:
        """Return what a session holds, as was noted when it was last let go of.

        Where it was not, after a crash or a change, it is looked at, which may take long, and noted if it lasts.
        """
        noted = folder.noted_size()
        if noted is not None:
            return noted
        with suppress(OSError):
            return os.stat(folder.path / IMAGE, follow_symlinks=False).st_blocks * _SECTOR
        lasting = folder.keeps_its_size()
        try:
            size = _size_of(folder.path / FOLDER)
        except OSError:
            return 0
        with self._noting:  # So that nobody begins to change it between the two.
            if lasting and folder.keeps_its_size():
                folder.note_size(size)
        return size


def _size_of(folder: Path) -> int:
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return content(root).size
    finally:
        os.close(root)
