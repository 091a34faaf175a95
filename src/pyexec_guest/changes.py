"""Which files a turn has created or changed, as far as a quick look tells."""

import os
import time
from collections import deque
from dataclasses import dataclass

LOOKED_AT = 1000
LOOK_SECONDS = 0.05
SETTLED_NS = 20_000_000
"""How long before a look a folder must have changed for its time to tell of the next change: clocks of disks tick."""

REPORTED = 50
LONGEST_PATH = 400

_CACHES = frozenset({"__pycache__", "node_modules"})
_CACHE_ENDINGS = (".pyc", ".pyo")

_Mark = tuple[int, int, int]
"""Size, time of the last change, inode."""


@dataclass(frozen=True)
class Change:
    """A file that is new or not what it was; `path` counts from the folder."""

    path: str
    size: int
    change: str


class Watch:
    """Compares what lies below a folder before and after a turn: sizes and times, no contents.

    Hidden files and caches are left out. At most so many entries are looked at, those that lie highest first.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._before: dict[str, _Mark] = {}
        self._complete = True
        self._began_ns = 0
        self._seen: tuple[dict[str, _Mark], dict[str, int], int] | None = None

    def begin(self) -> None:
        """Look before a turn; what was seen after the one before will do, where nothing has come since or gone."""
        if self._seen is not None and self._has_same_entries(*self._seen[1:]):
            self._before, self._complete = self._seen[0], True
        else:
            self._before, self._complete = self._look()
        self._began_ns = time.time_ns()

    def changes(self) -> "list[Change]":
        """Look after it; return what differs, by path."""
        if self._seen is not None and self._has_same_files(*self._seen):
            return []
        after, _ = self._look()
        if after == self._before:
            return []
        found: list[Change] = []
        for path, mark in sorted(after.items()):
            before = self._before.get(path)
            if before == mark or (before is None and not self._complete and mark[1] < self._began_ns):
                continue
            new = before is None and self._complete
            found.append(Change(path, mark[0], "created" if new else "changed"))
        return found

    def _has_same_entries(self, folders: "dict[str, int]", looked_at: int) -> bool:
        """Tell whether folders have the times they had, and had them long enough before somebody looked into them."""
        try:
            return all(
                changed < looked_at - SETTLED_NS and os.stat(self._path(folder)).st_mtime_ns == changed
                for folder, changed in folders.items()
            )
        except OSError:
            return False

    def _has_same_files(self, files: "dict[str, _Mark]", folders: "dict[str, int]", looked_at: int) -> bool:
        """Tell whether nothing has come or gone since, as above, and all files are as they were."""
        if not self._has_same_entries(folders, looked_at):
            return False
        try:
            return all(_mark(os.lstat(self._path(file))) == mark for file, mark in files.items())
        except OSError:
            return False

    def _path(self, folder: str) -> str:
        return f"{self._folder}/{folder}"

    def path_of(self, change: Change) -> str:
        """Return where a file is."""
        return os.path.join(self._folder, change.path)

    def _look(self) -> "tuple[dict[str, _Mark], bool]":
        """Return what there is, and whether that is all."""
        found: dict[str, _Mark] = {}
        self._seen = None
        if not self._folder:
            return found, True
        until, began = time.monotonic() + LOOK_SECONDS, time.time_ns()
        folders = deque([""])
        changed: dict[str, int] = {}
        looked = 0
        while folders:
            folder = folders.popleft()
            before = f"{folder}/" if folder else ""
            try:
                changed[folder] = os.stat(self._path(folder)).st_mtime_ns
                entries = os.scandir(self._path(folder))
            except OSError:
                changed[folder] = began  # Who knows what is there when it can be read.
                continue
            with entries:
                for entry in entries:
                    looked += 1
                    if looked > LOOKED_AT or (looked % 64 == 0 and time.monotonic() > until):
                        return found, False
                    path = before + entry.name
                    if not _is_told(entry.name) or len(path) > LONGEST_PATH:
                        continue
                    try:
                        if entry.is_file(follow_symlinks=False):
                            found[path] = _mark(entry.stat(follow_symlinks=False))
                        elif entry.is_dir(follow_symlinks=False):
                            folders.append(path)
                    except OSError:
                        continue  # It has gone meanwhile.
        self._seen = found, changed, began
        return found, True


def _mark(state: os.stat_result) -> _Mark:
    return state.st_size, state.st_mtime_ns, state.st_ino


def _is_told(name: str) -> bool:
    return not (name.startswith(".") or name in _CACHES or name.endswith(_CACHE_ENDINGS)) and name.isprintable()
