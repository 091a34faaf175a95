"""Folders in which somebody else has made what they wanted: names, depths and permissions are not to be trusted."""

import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

DEEPEST = 100
_BLOCK = 512
_ITSELF = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What is in a folder: bytes on the disk, files and folders; `deep` when some lie deeper than is looked."""

    size: int
    files: int
    deep: bool


def content(folder: int, most: int = sys.maxsize) -> Content:
    """Return what is in a folder, as far down as `DEEPEST`, and until there are more than `most`; follows no link.

    What cannot be looked into for want of a permission is given it.
    """
    size = files = 0
    deep = False
    linked: set[int] = set()
    open_ones = [_entered(folder)]
    try:
        while open_ones and files <= most:
            current, names = open_ones[-1]
            if not names:
                os.close(open_ones.pop()[0])
                continue
            with suppress(OSError):  # It has gone meanwhile.
                name = names.pop()
                found = os.stat(name, dir_fd=current, follow_symlinks=False)
                files += 1
                if found.st_nlink < 2 or stat.S_ISDIR(found.st_mode) or found.st_ino not in linked:
                    linked.add(found.st_ino)
                    size += found.st_blocks * _BLOCK
                if stat.S_ISDIR(found.st_mode):
                    if len(open_ones) > DEEPEST:
                        deep = True
                        continue
                    place = os.open(name, _ITSELF, dir_fd=current)
                    try:
                        open_ones.append(_entered(place))
                    finally:
                        os.close(place)
    finally:
        for fd, _ in open_ones:
            os.close(fd)
    return Content(size=size, files=files, deep=deep)


def remove(folder: Path) -> None:
    """Remove a folder with all that is in it, which nobody uses any more.

    However deep it is, no more than two folders are open at a time: what lies further down is first moved up.

    Raises:
        OSError: It cannot be done.
    """
    with suppress(FileNotFoundError), _opened(folder, None) as top:
        fresh = count()
        while names := os.listdir(top):
            for name in names:
                _remove(name, top, fresh)
    with suppress(FileNotFoundError):
        folder.rmdir()


def _remove(name: str, top: int, fresh: "count[int]") -> None:
    if not _is_folder(name, top):
        os.unlink(name, dir_fd=top)
        return
    with _opened(name, top) as inner:
        for below in os.listdir(inner):
            if not _is_folder(below, inner):
                os.unlink(below, dir_fd=inner)
                continue
            with _opened(below, inner):  # To be moved it must be writable.
                pass
            _move_up(below, inner, top, fresh)
    os.rmdir(name, dir_fd=top)


def _move_up(name: str, inner: int, top: int, fresh: "count[int]") -> None:
    while True:
        place = f"{next(fresh)}-{os.urandom(4).hex()}"
        with suppress(FileExistsError, NotADirectoryError):
            os.rename(name, place, src_dir_fd=inner, dst_dir_fd=top)
            return


def _is_folder(name: str, folder: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _entered(place: int) -> tuple[int, list[str]]:
    """Return a folder that is opened by path, opened to be read, and the names in it."""
    fd = _reopened(place)
    try:
        return fd, os.listdir(fd)
    except BaseException:
        os.close(fd)
        raise


def _reopened(place: int) -> int:
    """Open a folder that is opened by path to be read, with all permissions for whoever it belongs to."""
    mode = stat.S_IMODE(os.fstat(place).st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        # By the descriptor: a name may mean something else by now.
        os.chmod(f"/proc/self/fd/{place}", mode | stat.S_IRWXU)
    return os.open(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


@contextmanager
def _opened(name: str | Path, folder: int | None) -> Generator[int]:
    """Open a folder itself, no link to one, with all permissions for whoever it belongs to."""
    place = os.open(name, _ITSELF, dir_fd=folder)
    try:
        fd = _reopened(place)
    finally:
        os.close(place)
    try:
        yield fd
    finally:
        os.close(fd)
