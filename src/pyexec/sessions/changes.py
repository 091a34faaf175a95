"""Which files of a workspace a turn has created, changed or deleted, as far as a quick look from outside tells."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pyexec.sessions.walking import Walk

MOST_LOOKED_AT = 20_000
LOOK_SECONDS = 0.1
MOST_TOLD = 50

_CLOCK_NS = 20_000_000
"""The kernel's time of a change lags behind the clock by as much as a tick."""

_CACHES = frozenset({"__pycache__", "node_modules"})
_CACHE_ENDINGS = (".pyc", ".pyo")

Mark = tuple[int, int, int, int]
"""Inode, size, times of the last change of content and of anything: the last one no program can set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What there was. `complete` says whether that was all; `taken_ns` is when the look began."""

    marks: Mapping[str, Mark]
    complete: bool
    taken_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A file that is new, not what it was, or gone; `path` counts from the workspace, `size` is 0 when it is gone."""

    path: str
    size: int
    change: Literal["created", "changed", "deleted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What has changed, by path; `more` is how many were left out."""

    files: tuple[FileChange, ...] = ()
    more: int = 0


def snapshot(fd: int) -> Snapshot:
    """Look at the regular files of a workspace: names, sizes and times, no contents. Blocks for some milliseconds.

    Hidden files and caches are left out; of very many files those are looked at that lie highest.

    Args:
        fd: An open descriptor of its root.

    Raises:
        OSError: It cannot be read.
        UnsupportedPlatformError: This kernel cannot do it safely.
    """
    taken_ns = time.time_ns()
    walk = Walk(fd, most=MOST_LOOKED_AT, seconds=LOOK_SECONDS, wanted=_is_told)
    marks: dict[str, Mark] = {}
    for prefix, entries in walk:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                try:
                    state = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # It has gone meanwhile.
                    continue
                marks[prefix + entry.name] = (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    return Snapshot(marks=marks, complete=walk.complete, taken_ns=taken_ns)


def compare(before: Snapshot, after: Snapshot, most: int = MOST_TOLD) -> Changes:
    """Return what differs between two looks.

    Where a look was not complete, what is missing in it says nothing: a file that is only in the second is told as
    changed if it was touched since the first one, and none as deleted.
    """
    found: list[FileChange] = []
    for path, mark in after.marks.items():
        old = before.marks.get(path)
        if old == mark:
            continue
        if old is None and not before.complete and mark[3] < before.taken_ns - _CLOCK_NS:
            continue
        change = "created" if old is None and before.complete else "changed"
        found.append(FileChange(path=path, size=mark[1], change=change))
    if after.complete:
        gone = before.marks.keys() - after.marks.keys()
        found += [FileChange(path=path, size=0, change="deleted") for path in gone]
    found.sort(key=lambda one: one.path)
    return Changes(files=tuple(found[:most]), more=max(0, len(found) - most))


def _is_told(name: str) -> bool:
    return not (name.startswith(".") or name in _CACHES or name.endswith(_CACHE_ENDINGS))
