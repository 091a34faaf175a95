"""Writing files into a workspace: a new one appears whole or not at all, and belongs to whom the workspace belongs."""

import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.sessions import workspaces_full
from pyexec.sessions.failures import full
from pyexec.sessions.paths import Place
from pyexec.sessions.workspaces import WorkspaceFolder
from pyexec.storage.beneath import open_beneath, open_folder, open_plain

Manner = Literal["create", "replace", "append"]

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_FILE_MODE = 0o644
_FOLDER_MODE = 0o755
_PERMISSIONS = 0o777


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written; `size` is that of the file now."""

    path: str
    size: int
    created: bool


def write_file(folder: WorkspaceFolder, place: Place, data: bytes, manner: Manner) -> Written:
    """Write a file, and make the folders that it is to lie in.

    Raises:
        InvalidArgumentError: There is something of that name, which is not to be replaced; or it is no name of a file.
        DiskFullError: There is no room for it.
        WorkspacesFullError: The owner's workspaces would hold more than they may.
        NotPlainError: What is to be appended to is no regular file.
        OSError: It cannot be written.
    """
    if not place.name:
        raise InvalidArgumentError("path names the session's folder itself; it must name a file in it.")
    if folder.allowed is not None and folder.used + len(data) > folder.allowed:
        raise workspaces_full(folder.used, folder.allowed)
    if folder.room is not None and len(data) > folder.room:
        raise full(place)
    owner = os.fstat(folder.fd)
    parent = _made_folder(folder.fd, place.parent, owner)
    try:
        if manner == "append":
            with suppress(FileNotFoundError):
                return Written(path=place.path, size=_append(parent, place, data), created=False)
        old = _state_of(parent, place.name)
        if old is not None and manner != "replace":
            raise _taken(place, old)
        _write_new(parent, place, data, owner, old)
        return Written(path=place.path, size=len(data), created=old is None)
    finally:
        os.close(parent)


def _made_folder(root: int, place: Place, owner: os.stat_result) -> int:
    """Open a folder, after making those that are missing; one by one, as another may take away what is there."""
    with suppress(FileNotFoundError):
        return open_folder(root, place.path)
    fd = open_folder(root, ".")
    for name in place.parts:
        try:
            inner = _made_inner(fd, name, owner)
        finally:
            os.close(fd)
        fd = inner
    return fd


def _made_inner(parent: int, name: str, owner: os.stat_result) -> int:
    try:
        os.mkdir(name, _FOLDER_MODE, dir_fd=parent)
    except FileExistsError:
        return open_folder(parent, name)
    fd = open_folder(parent, name)
    try:
        _hand_over(fd, owner, _FOLDER_MODE)
    except OSError:
        os.close(fd)
        raise
    return fd


def _append(parent: int, place: Place, data: bytes) -> int:
    fd = open_plain(parent, place.name, os.O_WRONLY | os.O_APPEND)
    try:
        before = os.fstat(fd).st_size
        try:
            _write(fd, data)
        except OSError:
            os.ftruncate(fd, before)
            raise
        return os.fstat(fd).st_size
    finally:
        os.close(fd)


def _write_new(parent: int, place: Place, data: bytes, owner: os.stat_result, old: os.stat_result | None) -> None:
    """Write a file under a name that nobody knows, and only then give it its own.

    The owner of the folder may put something else in its place meanwhile: that is given the name then, for neither
    step follows a link.
    """
    part = f".upload-{secrets.token_hex(8)}"
    fd = open_beneath(parent, part, _NEW, 0o600)
    try:
        try:
            _write(fd, data)
            _hand_over(fd, owner, _mode_like(old))
        finally:
            os.close(fd)
        if old is None:
            try:
                os.link(part, place.name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
            except FileExistsError:
                raise _taken(place, None) from None
        else:
            os.replace(part, place.name, src_dir_fd=parent, dst_dir_fd=parent)
    finally:
        with suppress(OSError):
            os.unlink(part, dir_fd=parent)


def _mode_like(old: os.stat_result | None) -> int:
    """Return the mode of what replaces something; without set-uid and the like."""
    if old is None or not stat.S_ISREG(old.st_mode):
        return _FILE_MODE
    return stat.S_IMODE(old.st_mode) & _PERMISSIONS | stat.S_IRUSR | stat.S_IWUSR


def _hand_over(fd: int, owner: os.stat_result, mode: int) -> None:
    """Give what was made to the owner of the workspace, whose code is to read and write it."""
    state = os.fstat(fd)
    if (state.st_uid, state.st_gid) != (owner.st_uid, owner.st_gid):
        os.fchown(fd, owner.st_uid, owner.st_gid)
    os.fchmod(fd, mode)


def _write(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def _state_of(parent: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _taken(place: Place, old: os.stat_result | None) -> InvalidArgumentError:
    if old is not None and stat.S_ISDIR(old.st_mode):
        return InvalidArgumentError(f"{place.shown} is a folder.")
    return InvalidArgumentError(f"{place.shown} exists already.", hint="overwrite=true replaces it.")
