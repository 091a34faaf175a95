"""Going through the folders of a workspace: those that lie highest first, never through a link, never without end."""

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from itertools import islice

from pyexec.sessions.paths import LONGEST_NAME, LONGEST_PATH
from pyexec.storage.beneath import open_folder

DEEPEST = 64
_AT_ONCE = 256

Entry = os.DirEntry[str]


class Walk:
    """A walk through a folder.

    Args:
        root: The workspace.
        start: The path of the folder to begin with.
        most: How many entries are looked at.
        seconds: How long it may take.
        wanted: Says by their names which entries are looked at.
        deep: Whether to go into the folders in it.
    """

    def __init__(
        self,
        root: int,
        start: str = ".",
        *,
        most: int,
        seconds: float,
        wanted: Callable[[str], bool] | None = None,
        deep: bool = True,
    ) -> None:
        self._root = root
        self._start = start
        self._left = most
        self._until = time.monotonic() + seconds
        self._wanted = wanted
        self._deep = deep
        self.complete = True
        """Whether everything was looked at, once the walk is over."""

    def __iter__(self) -> Iterator[tuple[str, list[Entry]]]:
        """Yield entries, many at a time, with what their names are to be put behind: `""`, or a path and a slash.

        What was yielded counts until the next step only: a closed folder says nothing more about its entries.

        Raises:
            OSError: The folder to begin with cannot be opened.
        """
        folders: deque[tuple[str, int]] = deque([("", 1)])
        while folders:
            prefix, depth = folders.popleft()
            for entries in self._some(prefix):
                yield prefix, entries
                if self._deep:
                    inner = [f"{prefix}{one.name}/" for one in entries if one.is_dir(follow_symlinks=False)]
                    within = [one for one in inner if depth < DEEPEST and _is_short(one)]
                    folders.extend((one, depth + 1) for one in within)
                    self.complete = self.complete and len(within) == len(inner)
                if self._left <= 0 or time.monotonic() > self._until:
                    self.complete = False
                    return

    def _some(self, prefix: str) -> Generator[list[Entry]]:
        try:
            fd = open_folder(self._root, f"{self._start}/{prefix}")
        except OSError:
            if not prefix:
                raise
            self.complete = False  # It has gone meanwhile, or is closed to us.
            return
        try:
            with os.scandir(fd) as found:
                while entries := list(islice(found, min(_AT_ONCE, max(self._left, 1)))):
                    self._left -= len(entries)
                    yield entries if self._wanted is None else [one for one in entries if self._wanted(one.name)]
        except OSError:
            self.complete = False
        finally:
            os.close(fd)


def _is_short(path: str) -> bool:
    return len(os.fsencode(path)) < LONGEST_PATH - LONGEST_NAME
