"""Which servers work on a state folder, so that others notice when one was killed.

Each has a file there, which it locks as long as it lives and removes when it ends as it should.
"""

import fcntl
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

from pyexec_guest.keeper.turn import is_locked

AFTERMATH_SECONDS = 10.0
"""So long after a server was seen to be killed, what it began may still leave something behind."""

_NOTICED = ".noticed"
_PRIVATE = 0o700


class Presence:
    """That of one server, and what it sees of the others. Methods block on the disk.

    Args:
        folder: Where all of them show theirs.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shown: tuple[Path, int] | None = None
        os.register_at_fork(after_in_child=self._forget)  # A copy that lives on is not this server.

    def show(self) -> None:
        """Let the others notice if this process is killed, from now on; where the disk is full they do not."""
        name = secrets.token_hex(8)
        path, made = self._folder / name, self._folder / f".{name}"
        with suppress(OSError):
            self._folder.mkdir(mode=_PRIVATE, exist_ok=True)
            fd = os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            self._shown = (path, fd)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)  # Before it has a name that others look at.
                made.rename(path)
            finally:
                made.unlink(missing_ok=True)

    def close(self) -> None:
        """End as one should."""
        if self._shown is not None:
            path, fd = self._shown
            self._shown = None
            with suppress(OSError):
                path.unlink()
            os.close(fd)

    def killed(self) -> list[Path]:
        """Return what stands for servers that were killed, and of whom not all may have been found that they left."""
        return [path for path in self._others() if path.name.endswith(_NOTICED) or _is_left(path)]

    def note(self, killed: list[Path]) -> None:
        """Note that somebody has looked for what these left; some time after the first did they are forgotten."""
        for path in killed:
            with suppress(OSError):  # Another server notes the same.
                if not path.name.endswith(_NOTICED):
                    path.rename(path.with_name(path.name + _NOTICED))
                elif path.stat().st_ctime < time.time() - AFTERMATH_SECONDS:
                    path.unlink()

    def _forget(self) -> None:
        if self._shown is not None:
            os.close(self._shown[1])
            self._shown = None

    def _others(self) -> list[Path]:
        own = self._shown[0] if self._shown is not None else None
        try:
            names = os.listdir(self._folder)
        except OSError:  # Nobody could show there.
            return []
        return [path for name in names if not name.startswith(".") and (path := self._folder / name) != own]


def _is_left(path: Path) -> bool:
    """Tell whether one is there that nobody holds; who is just ending takes its own away."""
    return not is_locked(os.fspath(path)) and path.exists()
