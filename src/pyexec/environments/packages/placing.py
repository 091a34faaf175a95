"""Putting the files of a set into the folder of a live session: whole packages appear, and nothing is replaced."""

import errno
import filecmp
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pyexec.domain.errors import PackagesUnavailableError
from pyexec.environments.installed import installed_in

_INFO = ".dist-info"
_CACHE = "__pycache__"
_PART = ".placing-"
_MODE = 0o755
_NO_LINK = frozenset({errno.EXDEV, errno.EMLINK, errno.EPERM, errno.EOPNOTSUPP})


def open_folder(into: Path) -> None:
    """Make a folder of a session's packages, if there is none, that the users of sandboxes may read whatever the umask.

    Raises:
        FileNotFoundError: The session is gone.
    """
    with suppress(FileExistsError):
        into.mkdir(mode=_MODE)
        into.chmod(_MODE)


def placed_in(folder: Path) -> tuple[str, ...]:
    """Return what has been placed in a folder, each as `name==version` or `name @ url`."""
    return tuple(sorted(one.shown() for one in installed_in(folder)))


def lock_of(folder: Path) -> Path:
    """Return the file to lock while something is put into a folder of packages."""
    return folder.with_name(f"{folder.name}.lock")


def place(files: Path, into: Path) -> None:
    """Put files into a folder that a sandbox reads from, by links where that can be done.

    What is there stays as it is. A package that was not there appears in one step, and is told of last; where several
    packages share a folder, each file appears in one step. One call at a time for a folder.

    Raises:
        PackagesUnavailableError: There is another file under the same name; nothing has been placed.
        OSError: The disk would not take it.
    """
    open_folder(into)
    _forget_parts(into)
    different = next(_differences(files, into, Path()), None)
    if different is not None:
        raise PackagesUnavailableError(
            f"The packages bring a file {str(different)[:200]!r}, of which this session has another one already.",
            hint="Ask for them in a new session.",
        )
    for name in sorted(os.listdir(files), key=lambda name: (name.endswith(_INFO), name)):
        _place(files / name, into / name)


def _differences(source: Path, target: Path, below: Path) -> Iterator[Path]:
    """Yield what is under the same name in both and not the same."""
    for name in os.listdir(source):
        one, other = source / name, target / name
        if name == _CACHE or not os.path.lexists(other):
            continue
        kinds = [stat.S_IFMT(os.lstat(path).st_mode) for path in (one, other)]
        if kinds == [stat.S_IFDIR, stat.S_IFDIR]:
            yield from _differences(one, other, below / name)
        elif kinds != [stat.S_IFREG, stat.S_IFREG] or not _same(one, other):
            yield below / name


def _same(one: Path, other: Path) -> bool:
    return os.path.samefile(one, other) or filecmp.cmp(one, other, shallow=False)


def _place(source: Path, target: Path) -> None:
    if os.path.lexists(target):
        if source.is_dir():
            for name in os.listdir(source):
                _place(source / name, target / name)
        return
    part = target.with_name(f"{_PART}{secrets.token_hex(8)}")
    try:
        if source.is_dir():
            _link_folder(source, part)
        else:
            _link(source, part)
        part.rename(target)
    except BaseException:
        _remove(part)
        raise


def _link_folder(source: Path, target: Path) -> None:
    target.mkdir(mode=_MODE)
    os.chmod(target, _MODE)
    with os.scandir(source) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _link_folder(Path(entry.path), target / entry.name)
            else:
                _link(Path(entry.path), target / entry.name)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        shutil.copy2(source, target, follow_symlinks=False)


def _forget_parts(into: Path) -> None:
    """Remove what a call that was cut off has left, as far as it lies on top."""
    for path in into.glob(f"{_PART}*"):
        _remove(path)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
