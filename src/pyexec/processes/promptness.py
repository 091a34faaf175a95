"""How soon a thread gets a processor that others are using, when something has come for it."""

import ctypes
import os
import sys
from typing import Any

SLICE_NANOSECONDS = 100_000
"""What runs so shortly at a time need not wait for the end of others' slices (Linux 6.12). It gets no more time."""

_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_RESET_ON_FORK = 1


class _Attributes(ctypes.Structure):
    """`struct sched_attr` of sched_setattr(2), as far as it is needed."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )


def be_prompt() -> None:
    """Have the calling thread run soon after it has been woken, for moments; what it starts is as anything else.

    Does nothing where that cannot be had, or where somebody has already seen to it that this process comes first.
    """
    number = _SCHED_SETATTR.get(os.uname().machine) if sys.platform == "linux" else None
    if number is None:
        return
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    if nice < 0 or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return
    asked = _Attributes(size=ctypes.sizeof(_Attributes), flags=_RESET_ON_FORK, nice=nice, runtime=SLICE_NANOSECONDS)
    libc: Any = ctypes.CDLL(None)
    libc.syscall(ctypes.c_long(number), ctypes.c_int(0), ctypes.byref(asked), ctypes.c_uint(0))
