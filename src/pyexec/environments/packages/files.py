"""What lies in a set of packages, which somebody else has made: nothing but files and folders, and not too many."""

import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from pyexec.domain.packages import PackageSettings
from pyexec.domain.sizes import MEGABYTE

# Scripts to start and headers to compile with are of no use in a sandbox; the lock is uv's own.
_LEFT_OUT = ("bin", "include", ".lock")
_MAY_READ = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
_FILE_MODE = 0o644
_PROGRAM_MODE = 0o755


class RefusedFilesError(Exception):
    """There is something in it that must not be there; the message is a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much disk files take, in bytes, and how many there are, folders included."""

    size: int
    count: int


def tidy(root: Path, settings: PackageSettings) -> Extent:
    """Leave out what nobody needs, see that all users may read the rest, and tell how much it is.

    Raises:
        RefusedFilesError: There is a link or the like, or it is too much.
    """
    for name in _LEFT_OUT:
        path = root / name
        if path.is_symlink() or path.is_file():
            path.unlink()
        else:
            shutil.rmtree(path, ignore_errors=True)
    size = count = 0
    pending = [str(root)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                count += 1
                size += status.st_size
                if count > settings.files:
                    raise RefusedFilesError(too_many(settings))
                if size > settings.size:
                    raise RefusedFilesError(too_large(settings))
                if stat.S_ISDIR(status.st_mode):
                    os.chmod(entry.path, _PROGRAM_MODE)
                    pending.append(entry.path)
                elif stat.S_ISREG(status.st_mode):
                    _see_to_mode(entry.path, status.st_mode)
                else:
                    where = os.path.relpath(entry.path, root)
                    raise RefusedFilesError(f"One of the packages has in {where[:200]!r} neither a file nor a folder.")
    return Extent(size=size, count=count)


def too_large(settings: PackageSettings) -> str:
    """Say that it is too much."""
    return (
        f"The packages come to more than {settings.size // MEGABYTE} MB, which is the most that they may "
        "(PYEXEC_PACKAGES_MB); ask for less."
    )


def too_many(settings: PackageSettings) -> str:
    """Say that there are too many."""
    return (
        f"The packages have more than {settings.files} files, which is the most that they may (PYEXEC_PACKAGES_FILES); "
        "ask for less."
    )


def _see_to_mode(path: str, mode: int) -> None:
    """Have a file that everybody may read, and that is nothing else; its bytes may be shared with uv's cache."""
    good = mode & _MAY_READ == _MAY_READ and not mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IWOTH)
    if good:
        return
    part = f"{path}.part"
    shutil.copyfile(path, part, follow_symlinks=False)
    os.chmod(part, _PROGRAM_MODE if mode & stat.S_IXUSR else _FILE_MODE)
    os.replace(part, path)
