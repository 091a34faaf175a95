"""Mounts that nobody sees: each is a descriptor, until who has it attaches it in a namespace of their own.

Linux 5.12 has all of it.
"""

import ctypes
import os
import struct
from collections.abc import Sequence
from typing import Any

# On every architecture.
_OPEN_TREE = 428
_MOVE_MOUNT = 429
_FSOPEN = 430
_FSCONFIG = 431
_FSMOUNT = 432
_MOUNT_SETATTR = 442

_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_AT_EMPTY_PATH = 0x1000
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_F_EMPTY_PATH = 4
_CLOEXEC = 1
_SET_FLAG, _SET_STRING, _CREATE = 0, 1, 6

_RDONLY = 1
_NOSUID = 2
_NODEV = 4
_NOEXEC = 8
_PRIVATE = 1 << 18
_ATTRIBUTES = struct.Struct("=QQQQ")

_libc: "Any" = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def take(folder: int, *, writable: bool, programs: bool) -> int:
    """Return a mount of a folder and of what is mounted further down in it; no set-uid program or device counts there.

    Args:
        folder: The folder, opened in this process's own mount namespace.
        writable: Whether it can be written to.
        programs: Whether what is in it can be run.

    Raises:
        OSError: The kernel refuses, as it does without CAP_SYS_ADMIN, or does not know how (ENOSYS).
    """
    whole = _OPEN_TREE_CLONE | _AT_EMPTY_PATH | _AT_RECURSIVE
    mount = _call("open_tree", _OPEN_TREE, folder, b"", whole | os.O_CLOEXEC)
    try:
        flags = _NOSUID | _NODEV | (0 if writable else _RDONLY) | (0 if programs else _NOEXEC)
        restrict(mount, flags)
    except BaseException:
        os.close(mount)
        raise
    return mount


def restrict(mount: int, flags: int) -> None:
    """Give a mount, and all below it, these attributes, and have nothing that is mounted elsewhere appear in it.

    Raises:
        OSError: The kernel refuses.
    """
    attributes = _ATTRIBUTES.pack(flags, 0, _PRIVATE, 0)
    _call("mount_setattr", _MOUNT_SETATTR, mount, b"", _AT_EMPTY_PATH | _AT_RECURSIVE, attributes, len(attributes))


def new(kind: str, source: str, options: "Sequence[str]" = ()) -> int:
    """Return a mount of a file system; no set-uid program or device counts there.

    Args:
        kind: Which file system.
        source: Where it is. One that is mounted already is mounted once more.
        options: `name` or `name=value`, each.

    Raises:
        OSError: The kernel refuses.
    """
    system = _call("fsopen", _FSOPEN, kind.encode("ascii"), _CLOEXEC)
    try:
        for option in (f"source={source}", *options):
            name, is_set, value = option.encode("ascii").partition(b"=")
            how, given = (_SET_STRING, value) if is_set else (_SET_FLAG, None)
            _call(f"fsconfig {option}", _FSCONFIG, system, how, name, given, 0)
        _call("fsconfig", _FSCONFIG, system, _CREATE, None, None, 0)
        return _call("fsmount", _FSMOUNT, system, _CLOEXEC, _NOSUID | _NODEV)
    finally:
        os.close(system)


def attach(mount: int, place: str) -> None:
    """Have a mount be at a place in this process's own mount namespace.

    Raises:
        OSError: The kernel refuses.
    """
    _call(f"move_mount {place}", _MOVE_MOUNT, mount, b"", _AT_FDCWD, os.fsencode(place), _MOVE_MOUNT_F_EMPTY_PATH)


def _call(what: str, number: int, *arguments: "int | bytes | None") -> int:
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *given)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result
