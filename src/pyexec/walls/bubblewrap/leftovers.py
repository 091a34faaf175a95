"""What a keeper that was killed has left behind, and the next one ends."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from pyexec.sandbox.guarding import boot_id, start_ticks


class OuterWalls:
    """Notes of the outer walls that a keeper has put up: a line each, `boot pid start-ticks`, of the first process.

    Args:
        path: The file, which only one keeper at a time has.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, pid: int) -> None:
        """Add one; its end ends everything behind it."""
        line = f"{boot_id()} {pid} {start_ticks(pid)}\n"
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with open(fd, "a", encoding="ascii") as file:
            file.write(line)

    def end_left_over(self) -> None:
        """End those that are still there, and forget them all."""
        with suppress(FileNotFoundError):
            for line in self._path.read_text("ascii").splitlines():
                _end(*line.split())
        self.forget()

    def forget(self) -> None:
        """Forget them all."""
        self._path.unlink(missing_ok=True)


def _end(boot: str = "", pid: str = "", ticks: str = "") -> None:
    if boot != boot_id() or not pid.isdecimal():
        return
    with suppress(ProcessLookupError):
        fd = os.pidfd_open(int(pid))
        try:
            # Asked only now: from here on the number cannot become another process's.
            if str(start_ticks(int(pid))) == ticks:
                signal.pidfd_send_signal(fd, signal.SIGKILL)
        finally:
            os.close(fd)
