"""How much memory this process has, had, and may have."""

import os
import resource
import sys
from contextlib import suppress

HEADROOM = 16 * 1024 * 1024


def peak_memory_bytes() -> int:
    """Return the most memory that this process has had resident."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def memory_bytes() -> int:
    """Return how much memory this process has resident now; the most it had, where that is not told."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return peak_memory_bytes()


class Headroom:
    """Memory that code cannot have, where it is limited: what is left to say how it ended, and to run the next."""

    def __init__(self) -> None:
        _soft, self._most = resource.getrlimit(resource.RLIMIT_DATA)
        limited = self._most != resource.RLIM_INFINITY and self._most > 2 * HEADROOM
        self._less = self._most - HEADROOM if limited else self._most
        self._is_kept = False

    def keep(self) -> None:
        """Keep it from the code that is about to run."""
        self._is_kept = True
        self._change(self._most, self._less)

    def use(self) -> None:
        """Have it, as the code has come to its end."""
        if self._is_kept:
            self._is_kept = False
            self._change(self._less, self._most)

    def _change(self, before: int, after: int) -> None:
        """Change the limit, unless the code has done so itself."""
        if before != after and resource.getrlimit(resource.RLIMIT_DATA) == (before, self._most):
            with suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_DATA, (after, self._most))
