"""Giving up privileges, all of them and for good."""

import ctypes

from pyexec_guest.confine.kernel import capset, prctl

_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_SECUREBITS = 28
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4

_SECURE = 0b11101111
"""No capabilities by being or becoming root, none kept or raised; each of these locked."""

_CAPABILITY_VERSION = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def last_capability() -> int:
    """Return the highest capability that this kernel knows."""
    with open("/proc/sys/kernel/cap_last_cap", encoding="ascii") as file:
        return int(file.read())


def drop_all(last: int) -> None:
    """Give up every capability, the chance to get one, and privileges by set-uid programs.

    Args:
        last: The highest capability there is (`last_capability`; /proc may not show it any more).

    Raises:
        OSError: The kernel refuses; the process must not go on.
    """
    prctl(_PR_SET_SECUREBITS, _SECURE)
    for number in range(last + 1):
        prctl(_PR_CAPBSET_DROP, number)
    prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    capset(_Header(_CAPABILITY_VERSION, 0), (_Data * 2)())
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def be_opaque(*, opaque: bool) -> None:
    """Keep other processes of the same user from looking into this one, or let them again.

    Raises:
        OSError: The kernel refuses.
    """
    prctl(_PR_SET_DUMPABLE, 0 if opaque else 1)
