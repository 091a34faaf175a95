"""Removing files and folders of a workspace, however deep, while their owner may still be at it."""

import errno
import os
import secrets
import stat
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress

from pyexec.domain.errors import InvalidArgumentError
from pyexec.sessions.paths import Place
from pyexec.storage.beneath import open_beneath, open_folder

MOST_SECONDS = 20.0
DEEPEST = 32
_AT_ONCE = 1000


def remove(root: int, place: Place, *, recursive: bool) -> int:
    """Remove a file, a link itself, or a folder with all that is in it; return how many entries have gone.

    Raises:
        InvalidArgumentError: It is a folder and `recursive` is false, or the workspace itself.
        OSError: It cannot be removed.
    """
    if not place.name:
        raise InvalidArgumentError("path names the session's folder itself; it must name something in it.")
    parent = open_folder(root, place.parent.path)
    try:
        if not stat.S_ISDIR(os.stat(place.name, dir_fd=parent, follow_symlinks=False).st_mode):
            os.unlink(place.name, dir_fd=parent)
            return 1
        if not recursive:
            raise InvalidArgumentError(f"{place.shown} is a folder.", hint="recursive=true deletes it with all in it.")
        removal = _Removal(place)
        removal.folder(parent, place.name)
        return removal.count
    finally:
        os.close(parent)


class _Removal:
    """Removes a folder. What lies too deep is moved up first: so no depth needs more than some descriptors."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._until = time.monotonic() + MOST_SECONDS
        self.count = 0

    def folder(self, parent: int, name: str) -> None:
        top = _opened(parent, name)
        try:
            while True:
                self._empty(top, top, 1)
                try:
                    os.rmdir(name, dir_fd=parent)
                except OSError:
                    self._check_time()
                    if not _has_entries(top):
                        raise
                else:
                    self.count += 1
                    return
        finally:
            os.close(top)

    def _emptied(self, folder: int) -> list[str]:
        """Remove the files of a folder, and its empty folders; return some of those that are left."""
        left: list[str] = []
        for name, is_folder in _entries(folder):
            self._check_time()
            try:
                if not is_folder:
                    os.unlink(name, dir_fd=folder)
                else:
                    os.rmdir(name, dir_fd=folder)
            except FileNotFoundError:
                continue
            except OSError:
                if not is_folder:
                    raise
                left.append(name)
            else:
                self.count += 1
            if len(left) >= _AT_ONCE:
                break
        return left

    def _empty(self, top: int, folder: int, depth: int) -> None:
        """Empty a folder, as far as nobody puts more into it; what lies too deep is moved up into the topmost one."""
        for name in self._emptied(folder):
            with suppress(FileNotFoundError, NotADirectoryError):
                if depth == DEEPEST:
                    _make_ours(folder, name)
                    os.rename(name, f".removed-{secrets.token_hex(8)}", src_dir_fd=folder, dst_dir_fd=top)
                    continue
                inner = _opened(folder, name)
                try:
                    self._empty(top, inner, depth + 1)
                finally:
                    os.close(inner)
                with _unless_filled():
                    os.rmdir(name, dir_fd=folder)
                    self.count += 1

    def _check_time(self) -> None:
        if time.monotonic() > self._until:
            raise InvalidArgumentError(
                f"{self.count} entries below {self._place.shown} are deleted, and there are more.",
                hint="Call it again.",
            )


def _entries(folder: int) -> Iterator[tuple[str, bool]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry.name, entry.is_dir(follow_symlinks=False)


def _has_entries(folder: int) -> bool:
    return next(_entries(folder), None) is not None


@contextmanager
def _unless_filled() -> Generator[None]:
    """Let a folder be that has been filled again meanwhile: the next round takes it."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise


def _opened(parent: int, name: str) -> int:
    _make_ours(parent, name)
    return open_folder(parent, name)


def _make_ours(parent: int, name: str) -> None:
    """Let its owner into a folder again: what is to be emptied or moved has to be writable."""
    fd = open_beneath(parent, name, os.O_PATH | os.O_DIRECTORY)
    try:
        if os.fstat(fd).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(f"/proc/self/fd/{fd}", stat.S_IRWXU)
    finally:
        os.close(fd)
