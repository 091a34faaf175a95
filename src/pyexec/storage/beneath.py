"""Opening files below a folder whose content is somebody else's: no link is followed, and nothing outside is reached.

A look at the path beforehand would not do: whoever owns the folder may swap any part of it for a link between the look
and the opening. The kernel is asked to keep to the folder itself (`openat2`, Linux 5.6).
"""

import ctypes
import errno
import os
import stat
import sys
from typing import Any

from pyexec.domain.errors import UnsupportedPlatformError

_OPENAT2 = 437  # On every architecture.
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x01, 0x02, 0x04, 0x08
_RESOLVE = _NO_XDEV | _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY  # A pipe in the place of a file must not make us wait for a writer.

_libc: Any = ctypes.CDLL(None, use_errno=True)


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class NotPlainError(OSError):
    """There is something else than a regular file of one name; `kind` says what."""

    def __init__(self, kind: str) -> None:
        super().__init__(errno.EINVAL, kind)
        self.kind = kind


def open_beneath(folder: int, path: str, flags: int, mode: int = 0) -> int:
    """Open what lies at a path below an open folder; return the descriptor.

    Raises:
        OSError: It cannot be opened: `ELOOP` where there is a link on the way, `EXDEV` where the way leads out.
        UnsupportedPlatformError: This kernel cannot do it safely.
    """
    if sys.platform != "linux":
        raise _unsupported()
    # The kernel refuses a mode for what is not to be made.
    how = _How(flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode if flags & os.O_CREAT else 0, _RESOLVE)
    name = os.fsencode(path)
    while True:
        fd: int = _libc.syscall(
            ctypes.c_long(_OPENAT2),
            ctypes.c_int(folder),
            ctypes.c_char_p(name),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if fd >= 0:
            return fd
        number = ctypes.get_errno()
        if number == errno.ENOSYS:
            raise _unsupported()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number), path)


def open_folder(folder: int, path: str) -> int:
    """Open a folder below another; `.` is that one itself.

    Raises:
        OSError: It cannot be opened, or is none.
        UnsupportedPlatformError: This kernel cannot do it safely.
    """
    return open_beneath(folder, path, os.O_RDONLY | os.O_DIRECTORY)


def open_plain(folder: int, path: str, flags: int = _READ, mode: int = 0) -> int:
    """Open a regular file that has no second name, which could be one outside; nothing else is opened for long.

    Raises:
        NotPlainError: It is something else.
        OSError: It cannot be opened.
        UnsupportedPlatformError: This kernel cannot do it safely.
    """
    try:
        fd = open_beneath(folder, path, flags | os.O_NONBLOCK | os.O_NOCTTY, mode)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV):  # A socket, or a pipe that nobody reads.
            raise NotPlainError("a socket, a pipe or a device") from error
        raise
    kind = _unlike_plain(os.fstat(fd))
    if kind is not None:
        os.close(fd)
        raise NotPlainError(kind)
    return fd


def _unlike_plain(state: os.stat_result) -> str | None:
    if stat.S_ISDIR(state.st_mode):
        return "a folder"
    if not stat.S_ISREG(state.st_mode):
        return "a socket, a pipe or a device"
    return "a file with several names (hard links)" if state.st_nlink > 1 else None


def _unsupported() -> UnsupportedPlatformError:
    return UnsupportedPlatformError(
        "Files of sessions cannot be reached safely on this system: its kernel has no openat2.",
        hint="Linux 5.6 or newer has it, where the container that this runs in does not forbid it.",
    )
