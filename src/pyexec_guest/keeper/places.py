"""Sockets by the folder they lie in, however long its path is: that of a unix socket may be 107 bytes long."""

import os
import socket
import struct
import sys
from collections.abc import Generator
from contextlib import contextmanager

SOCKET_NAME = "socket"


def bind_in(folder: "str | os.PathLike[str]", server: socket.socket) -> None:
    """Give a socket its name in a folder."""
    with _near(folder) as path:
        server.bind(path)


def connect_in(folder: "str | os.PathLike[str]", client: socket.socket) -> None:
    """Connect to the socket in a folder."""
    with _near(folder) as path:
        client.connect(path)


def may_talk(connection: socket.socket) -> bool:
    """Tell whether who has connected is this process's user, or root."""
    if sys.platform != "linux":
        return True  # The folder's mode is all there is.
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _pid, uid, _gid = struct.unpack("3i", credentials)
    return uid in (0, os.geteuid())


@contextmanager
def _near(folder: "str | os.PathLike[str]") -> Generator[str]:
    if sys.platform != "linux":
        yield os.path.join(os.fspath(folder), SOCKET_NAME)
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}/{SOCKET_NAME}"
    finally:
        os.close(fd)
