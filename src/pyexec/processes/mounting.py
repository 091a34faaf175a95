"""Mounts of folders of this machine, as descriptors, for who may take them and for who may not."""

import errno
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pyexec_guest.outside
from pyexec_guest.confine import mounts
from pyexec_guest.outside.mounter import ANSWER, PROGRAMS, WRITABLE

ANSWER_SECONDS = 20.0
END_SECONDS = 5.0
_OUTSIDE = Path(pyexec_guest.outside.__file__).parent


class Mounter:
    """Takes mounts of folders. As root by itself; for an ordinary user a process does, started when it is needed.

    May be used from several threads.

    Args:
        environ: What our own interpreter needs to start.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        self._lock = threading.Lock()
        self._helper: tuple[socket.socket, subprocess.Popen[bytes]] | None = None

    def take(self, path: str, folder: int, *, writable: bool, programs: bool) -> int:
        """Return a mount of a folder; nothing of it appears on this machine. Blocks for milliseconds.

        Args:
            path: Where it is.
            folder: The folder itself, opened.
            writable: Whether it can be written to through the mount.
            programs: Whether what is in it can be run.

        Raises:
            OSError: It cannot be had.
        """
        if os.geteuid() == 0:
            return mounts.take(folder, writable=writable, programs=programs)
        flags = (WRITABLE if writable else 0) | (PROGRAMS if programs else 0)
        with self._lock:
            try:
                return self._ask(path, folder, flags)
            except (BrokenPipeError, ConnectionResetError):
                self._end()
                return self._ask(path, folder, flags)  # It was killed: another one is asked.

    def close(self) -> None:
        """Let the process go, if there is one."""
        with self._lock:
            self._end()

    def _ask(self, path: str, folder: int, flags: int) -> int:
        if self._helper is None:
            self._helper = self._start()
        control, _process = self._helper
        socket.send_fds(control, [bytes([flags]) + os.fsencode(path)], [folder])
        if not select.select([control], [], [], ANSWER_SECONDS)[0]:
            self._end()
            raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        data, descriptors, _flags, _ = socket.recv_fds(control, ANSWER.size, 1)
        if not data:
            raise BrokenPipeError
        (number,) = ANSWER.unpack(data)
        if number or not descriptors:
            raise OSError(number or errno.EIO, os.strerror(number or errno.EIO))
        os.set_inheritable(descriptors[0], False)
        return descriptors[0]

    def _start(self) -> tuple[socket.socket, "subprocess.Popen[bytes]"]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                return ours, subprocess.Popen(
                    [sys.executable, "-I", "-S", str(_OUTSIDE), "mounter", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env=self._environ,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            except BaseException:
                ours.close()
                raise

    def _end(self) -> None:
        if self._helper is None:
            return
        control, process = self._helper
        self._helper = None
        control.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)
            return
        process.kill()
        process.wait()
