"""Calls of the kernel that Python has no function for, or has only since a version newer than ours."""

import ctypes
import os
from typing import Any

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

_CLOSE_RANGE = 436  # On every architecture; os.closerange goes through all numbers where it was built on an old system.

_MADV_COLLAPSE = 25

_libc: "Any" = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, first: int = 0, second: int = 0) -> int:
    """Get or set something about this process (prctl); return what the kernel returns.

    Raises:
        OSError: The kernel refuses.
    """
    result: int = _libc.prctl(
        ctypes.c_int(option), ctypes.c_ulong(first), ctypes.c_ulong(second), ctypes.c_ulong(0), ctypes.c_ulong(0)
    )
    return _checked(result, "prctl")


def prctl_pointer(option: int, first: int, structure: "ctypes.Structure") -> None:
    """Set something about this process (prctl) that takes a structure.

    Raises:
        OSError: The kernel refuses.
    """
    result: int = _libc.prctl(
        ctypes.c_int(option), ctypes.c_ulong(first), ctypes.byref(structure), ctypes.c_ulong(0), ctypes.c_ulong(0)
    )
    _checked(result, "prctl")


def close_from(first: int) -> None:
    """Close every descriptor from that number on.

    Raises:
        OSError: The kernel refuses.
    """
    result: int = _libc.syscall(
        ctypes.c_long(_CLOSE_RANGE), ctypes.c_uint(first), ctypes.c_uint(0xFFFFFFFF), ctypes.c_uint(0)
    )
    _checked(result, "close_range")


def gather_pages(address: int, size: int) -> None:
    """Have the kernel move what lies at an address into one large page; its content stays.

    Raises:
        OSError: It cannot be done.
    """
    result: int = _libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_int(_MADV_COLLAPSE))
    _checked(result, "madvise")


def unshare(flags: int) -> None:
    """Leave the namespaces of these kinds for new ones.

    Raises:
        OSError: The kernel refuses.
    """
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def setns(fd: int, kind: int) -> None:
    """Enter the namespace that a descriptor stands for.

    Raises:
        OSError: The kernel refuses.
    """
    _checked(_libc.setns(ctypes.c_int(fd), ctypes.c_int(kind)), "setns")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount a file system, or change a mount.

    Raises:
        OSError: The kernel refuses.
    """
    result: int = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode("ascii"),
        ctypes.c_ulong(flags),
        options.encode("ascii") if options else None,
    )
    _checked(result, f"mount {target}")


def capset(header: "ctypes.Structure", data: "ctypes.Array[Any]") -> None:
    """Set the capabilities of this thread.

    Raises:
        OSError: The kernel refuses.
    """
    _checked(_libc.capset(ctypes.byref(header), ctypes.byref(data)), "capset")


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
