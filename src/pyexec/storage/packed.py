"""Executions that were over in a moment: one file each, in place of a folder with ten.

It lies beside the folder that it stands for, and has what would be in there; it becomes that folder when somebody
wants to look into it, which for most nobody ever does. A line of JSON says how long each file is, and then they come
one after the other.
"""

import errno
import fcntl
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_SUFFIX = ".packed"
_UNPACKING = ".unpacking"
_ASIDE = ".removed"
_SPARE = "spare-"
_PRIVATE = 0o700

MOST_READY = 4


class Packer:
    """Packs folders that are not made. May be used from several threads.

    Making a file takes longer than all else, above all where many have been removed of late: some are kept ready.

    Args:
        folder: Where those lie. It is on the disk of what is packed, and nobody else's.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ready: list[_Spare] = []
        for left in folder.glob(f"{_SPARE}*"):
            left.unlink(missing_ok=True)

    def pack(self, folder: Path, files: Mapping[str, bytes]) -> None:
        """Write down what would be in a folder.

        Raises:
            OSError: It cannot be written; nothing is left of it.
        """
        head = json.dumps([(name, len(content)) for name, content in files.items()])
        data = b"".join((head.encode("ascii"), b"\n", *files.values()))
        path = os.fspath(folder) + _SUFFIX
        try:
            spare = self._ready.pop()
        except IndexError:
            spare = None
        if spare is None or not _is_filled(spare, data, path):
            _write_new(path, data)

    def get_ready(self) -> None:
        """Make a file for the next, unless there are some."""
        if len(self._ready) < MOST_READY:
            path = os.fspath(self._folder / f"{_SPARE}{secrets.token_hex(8)}")
            with suppress(OSError):  # It is made when it is needed, or what is wrong is told then.
                self._ready.append(_Spare(path, _new(path)))

    def close(self) -> None:
        """Remove those that were not needed."""
        while self._ready:
            path, fd = self._ready.pop()
            os.close(fd)
            with suppress(OSError):
                os.unlink(path)


class _Spare(NamedTuple):
    path: str
    fd: int


def _is_filled(spare: _Spare, data: bytes, path: str) -> bool:
    """Make a file that is kept ready the one that is needed; tell whether that went well."""
    with suppress(OSError), open(spare.fd, "wb", buffering=0) as file:
        if file.write(data) == len(data) and not os.path.exists(path):
            os.rename(spare.path, path)
            return True
    with suppress(OSError):
        os.unlink(spare.path)
    return False


def _write_new(path: str, data: bytes) -> None:
    fd = _new(path)
    try:
        written = os.write(fd, data)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(fd)
    if written != len(data):
        os.unlink(path)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _new(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def unpacked(folder: Path) -> Path:
    """Return a folder, having made it first where it is packed; blocks.

    Raises:
        OSError: There is no room for it.
    """
    path = _packed(folder)
    try:
        file = open(path, "rb")  # noqa: SIM115 - that it is not there is how most calls end
    except FileNotFoundError:
        return folder
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        files = _files_in(file.read())
        if not files or os.fstat(file.fileno()).st_nlink == 0:  # Just being written; done by another, or removed.
            return folder
        if not folder.exists():  # Else somebody was killed when all was done but the last step.
            _make(folder, files)
        path.unlink(missing_ok=True)
    return folder


def read(folder: Path, name: str) -> bytes | None:
    """Return what a file has in it in a folder that is packed; None where it is not, or has no such file."""
    try:
        return _files_in(_packed(folder).read_bytes()).get(name)
    except OSError:
        return None


def is_there(folder: Path) -> bool:
    """Tell whether there is such a folder, packed or not."""
    return folder.exists() or _packed(folder).exists()


def folders_in(parent: Path) -> list[Path]:
    """Return the folders in one, with those that are packed."""
    return [parent / name for name in {name.removesuffix(_SUFFIX) for name in os.listdir(parent)}]


def changed_at(folder: Path) -> float:
    """Return when a folder has changed, or was packed, in seconds since the epoch.

    Raises:
        FileNotFoundError: It is not there.
    """
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:
        return _packed(folder).stat().st_mtime


def set_aside(folder: Path) -> Path:
    """Give a folder that is to be removed, packed or not, a name by which nobody looks for it; return that."""
    aside = folder.with_name(folder.name + _ASIDE)
    _rename(folder, aside)
    return aside


def put_back(aside: Path) -> None:
    """Give one that was set aside the name it had."""
    _rename(aside, aside.with_name(aside.name.removesuffix(_ASIDE)))


def remove(folder: Path) -> None:
    """Remove a folder, packed or not, as far as that can be done."""
    path = _packed(folder)
    with suppress(OSError), open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # Nobody unpacks it just now.
        path.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def packed_bytes(folder: Path) -> int:
    """Return how much disk a folder takes while it is packed; 0 where it is not."""
    try:
        return _packed(folder).stat().st_size
    except OSError:
        return 0


def _rename(folder: Path, to: Path) -> None:
    for path, new in ((_packed(folder), _packed(to)), (folder, to)):
        with suppress(OSError):  # It is one of both.
            path.rename(new)


def _packed(folder: Path) -> Path:
    return folder.with_name(folder.name + _SUFFIX)


def _files_in(data: bytes) -> dict[str, bytes]:
    """Return what is packed; nothing as long as it is not all there."""
    head, newline, rest = data.partition(b"\n")
    if not newline:
        return {}
    try:
        sizes: list[tuple[str, int]] = json.loads(head)
    except ValueError:
        return {}
    found: dict[str, bytes] = {}
    at = 0
    for name, size in sizes:
        found[name] = rest[at : at + size]
        at += size
    return found if at == len(rest) else {}


def _make(folder: Path, files: Mapping[str, bytes]) -> None:
    made = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", suffix=_UNPACKING, dir=folder.parent))
    try:
        for name, content in files.items():
            _write(made / name, content)
        made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=_PRIVATE, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(content)
