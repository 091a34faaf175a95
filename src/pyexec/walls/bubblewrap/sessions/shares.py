"""How much the files of all sessions of one owner come to, and whether that is more than they may."""

import os
import time
from collections.abc import Mapping
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

    def _sum(self, owner: Path, live: Mapping[str, int]) -> int:
        now = time.monotonic()
        looked_at, kept = self._kept.get(owner, (0.0, {}))
        if owner not in self._kept or now - looked_at > LOOK_SECONDS:
            kept = _kept_in(owner)
            self._kept[owner] = now, kept
        return sum(live.values()) + sum(size for name, size in kept.items() if name not in live)


def _kept_in(owner: Path) -> dict[str, int]:
    try:
        names = [name for name in os.listdir(owner) if not name.startswith(".")]
    except OSError:
        return {}
    return {name: _kept_by(SessionFolder(owner / name)) for name in names}


def _kept_by(folder: SessionFolder) -> int:
    """Return what a session holds: as was noted when it was last let go of; else, after a crash, about."""
    noted = folder.noted_size()
    if noted is not None:
        return noted
    try:
        return os.stat(folder.path / IMAGE, follow_symlinks=False).st_blocks * _SECTOR
    except OSError:
        pass
    try:
        root = os.open(folder.path / FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return content(root).size
    except OSError:
        return 0
    finally:
        os.close(root)
