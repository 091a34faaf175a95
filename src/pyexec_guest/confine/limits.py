"""Limits that the kernel holds each process of a sandbox to."""

import resource
from dataclasses import dataclass

_NO_DUMP = 1
"""To the kernel a limit of 0 still allows a dump that the machine hands to a program of its own; 1 does not."""


@dataclass(frozen=True)
class ProcessLimits:
    """Sizes are bytes. `data` is what one process may allocate, `processes` counts those of the whole sandbox."""

    data: int
    processes: int
    open_files: int
    file_size: int


def put_on(limits: ProcessLimits) -> None:
    """Limit this process and all that come from it, for good.

    Raises:
        OSError, ValueError: The kernel refuses; the process must not go on.
    """
    for kind, limit in (
        (resource.RLIMIT_DATA, limits.data),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_FSIZE, limits.file_size),
        (resource.RLIMIT_CORE, _NO_DUMP),
        (resource.RLIMIT_MEMLOCK, 64 * 1024),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_SIGPENDING, 1024),
        (resource.RLIMIT_RTPRIO, 0),
        (resource.RLIMIT_NICE, 0),
    ):
        # Never more than there is: raising a hard limit is a privilege.
        _soft, hard = resource.getrlimit(kind)
        value = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (value, value))
