"""Folders that the kernel holds to no size: somebody looks into them, and ends the sandbox that has too much."""

import os
import threading
import time
from dataclasses import dataclass

from pyexec.domain.limits import MEGABYTE
from pyexec.sandbox.forks import Sight
from pyexec.storage.hostile_folders import DEEPEST, content
from pyexec.walls.bubblewrap.boxes import Box

BUSY_SECONDS = 0.2
IDLE_SECONDS = 1.0
CALM_LOOKS = 10
GRACE_SECONDS = 30.0
"""How long folders may stay deeper in one another than anybody looks, where they were there before."""

LEAST_REST = 10.0
"""How many times longer than it looks the watcher rests, so that it never costs much itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderLimits:
    """How many bytes may be in a folder, and how many files and folders."""

    size: int
    files: int


class Watched:
    """A sandbox with a folder that it may write to.

    What was in the folder before is no reason to end it: so that somebody can remove what is too much.

    Args:
        box: The sandbox.
        folder: The folder, opened.
        limits: What may be in it.

    Raises:
        OSError: The sandbox cannot be seen.
    """

    def __init__(self, box: Box, folder: int, limits: FolderLimits) -> None:
        self._box = box
        self._folder = os.dup(folder)
        self._device = os.stat(folder).st_dev
        self._sight = Sight(box.sandbox.first)
        before = content(folder)
        self._limits = FolderLimits(size=max(limits.size, before.size), files=max(limits.files, before.files))
        self._told = limits
        self._last = (before.size, before.files)
        self._calm = 0
        self._deep_until = time.monotonic() + (GRACE_SECONDS if before.deep else 0)

    def look(self) -> bool:
        """See how much is in the folder, and end the sandbox when it is too much; tell whether anything has changed."""
        try:
            found = content(self._folder, self._limits.files)
        except OSError as error:
            self._box.end(f"its workspace could not be looked into: {error.strerror}")
            return False
        size = found.size + self._sight.nameless(self._device)
        self._calm = self._calm + 1 if self._last == (size, found.files) else 0
        self._last = (size, found.files)
        why = None
        if size > self._limits.size:
            why = f"more than its limit of {self._told.size // MEGABYTE} MB"
        elif found.files > self._limits.files:
            why = f"more than its limit of {self._told.files} files and folders"
        elif found.deep and time.monotonic() > self._deep_until:
            why = f"folders in one another, more than {DEEPEST} deep"
        if why is not None:
            self._box.end(f"its workspace held {why}")
        return self._calm < CALM_LOOKS

    @property
    def size(self) -> int:
        """How many bytes were in the folder at the last look."""
        return self._last[0]

    @property
    def over(self) -> bool:
        """Whether the sandbox has ended."""
        return self._box.closed or not self._box.sandbox.is_alive()

    def close(self) -> None:
        """Let go of it."""
        self._sight.close()
        os.close(self._folder)


class FolderWatcher:
    """Watches folders on a thread while there are any. May be used from several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watched: set[Watched] = set()
        self._thread: threading.Thread | None = None

    def add(self, one: Watched) -> None:
        """Look at one from now on, until its sandbox has ended."""
        with self._changed:
            self._watched.add(one)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="folder-watcher", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _watch(self) -> None:
        rest = BUSY_SECONDS
        while True:
            with self._changed:
                self._changed.wait(rest)
                ended = {one for one in self._watched if one.over}
                self._watched -= ended
                watched = tuple(self._watched)
                if not watched:
                    self._thread = None
            for one in ended:
                one.close()
            if not watched:
                return
            started = time.monotonic()
            busy = False
            for one in watched:
                busy = one.look() or busy
            cost = time.monotonic() - started
            rest = max(BUSY_SECONDS if busy else IDLE_SECONDS, LEAST_REST * cost)
