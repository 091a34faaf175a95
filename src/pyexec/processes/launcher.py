"""Starting the launcher, and having it fork keepers."""

import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pyexec_guest.keeper
from pyexec.domain.errors import KeeperUnavailableError

START_SECONDS = 20.0
STOP_SECONDS = 2.0
_KEEPER = Path(pyexec_guest.keeper.__file__).parent


class Launcher:
    """This server's launcher process: started when first needed (or by `warm`), started anew when it is gone.

    It ends by itself when the server does. May be used from several threads.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        self._lock = threading.Lock()
        self._running: tuple[socket.socket, subprocess.Popen[bytes]] | None = None

    def warm(self) -> None:
        """Have it ready.

        Raises:
            KeeperUnavailableError: It does not start.
        """
        with self._lock:
            self._control()

    def fork_keeper(self, connection: socket.socket, lock_fd: int) -> None:
        """Have a keeper forked that takes its orders from `connection` and holds the lock from now on.

        Raises:
            KeeperUnavailableError: The launcher does not start.
        """
        with self._lock:
            try:
                socket.send_fds(self._control(), [b"k"], [connection.fileno(), lock_fd])
            except OSError:
                self._stop()  # It was killed: another one takes the request.
                try:
                    socket.send_fds(self._control(), [b"k"], [connection.fileno(), lock_fd])
                except OSError as error:
                    raise _unavailable("it went away twice") from error

    def close(self) -> None:
        """End the launcher; the keepers live on."""
        with self._lock:
            self._stop()

    def _control(self) -> socket.socket:
        if self._running is None:
            self._running = self._start()
        return self._running[0]

    def _start(self) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(_KEEPER), str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env=self._environ,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            except OSError as error:
                ours.close()
                raise _unavailable(str(error.strerror)) from error
        ours.settimeout(START_SECONDS)
        try:
            ready = ours.recv(1)
        except OSError:
            ready = b""
        if not ready:
            ours.close()
            process.kill()
            process.wait()
            raise _unavailable("it did not say that it is ready")
        return ours, process

    def _stop(self) -> None:
        if self._running is None:
            return
        control, process = self._running
        self._running = None
        control.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _unavailable(why: str) -> KeeperUnavailableError:
    return KeeperUnavailableError(
        f"The process that guards executions could not be started: {why}.",
        hint="See the log in the state folder; `pyexec serve` started by hand shows more.",
    )
