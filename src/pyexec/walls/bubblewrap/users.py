"""Whom sandboxes are, as a fork server counts its users."""

import fcntl
import os
import secrets
import threading
from itertools import count
from pathlib import Path


class SandboxUsers:
    """Hands out users. Those of sandboxes that leave nothing behind come from the lower half of the range.

    Those that files belong to come from the upper half, where none comes again before all the others have. May be used
    from several threads.

    Args:
        many: How many users there are, of which the first one is the fork server.
        counter: The file that tells how many of the upper half have been handed out, by whatever process; None: nobody
            else hands out any.
    """

    def __init__(self, many: int, counter: Path | None = None) -> None:
        self._half = many // 2
        self._upper = many - self._half
        self._counter = counter
        # From where on they are handed out: other owners on this machine begin elsewhere.
        self._passing = count(secrets.randbelow(1 << 30))
        self._first_lasting = secrets.randbelow(self._upper)
        self._lock = threading.Lock()

    def passing(self) -> int:
        """Return one for a sandbox of which nothing stays."""
        return 1 + next(self._passing) % (self._half - 1)

    def lasting(self) -> int:
        """Return one for a folder that stays. Blocks on the disk.

        Raises:
            OSError: The counter cannot be read or written.
        """
        with self._lock:
            if self._counter is None:
                self._first_lasting += 1
                number = self._first_lasting
            else:
                number = _next_of(self._counter, self._first_lasting)
        return self._half + number % self._upper


def given(folder: int, first: int, users: SandboxUsers | None, many: int) -> int:
    """Return whom a folder belongs to, as a fork server counts its users; one that is nobody's of theirs is given away.

    Args:
        folder: Its descriptor, which may be good for a path only.
        first: The fork server's own user on this machine.
        users: Hands out users.
        many: How many there are.

    Raises:
        OSError: It cannot be given away.
    """
    owner = os.stat(folder).st_uid
    if first < owner < first + many or users is None:
        return owner - first
    user = users.lasting()
    # The descriptor is one that has no more rights than a path.
    os.chown(f"/proc/self/fd/{folder}", first + user, first + user)
    return user


def _next_of(counter: Path, first: int) -> int:
    """Count on in a file that others count in too; begin with `first` where nothing has been counted yet."""
    fd = os.open(counter, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        text = os.read(fd, 64).strip()
        number = int(text) + 1 if text.isdigit() else first
        # One write of as many digits each time: whoever is killed leaves the old number or the new one.
        os.pwrite(fd, b"%020d\n" % number, 0)
        return number
    finally:
        os.close(fd)
