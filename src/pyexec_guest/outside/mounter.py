"""Takes mounts of folders for who may not: an ordinary user, in a user and a mount namespace of one's own.

It is asked over a SEQPACKET socket: a byte of `WRITABLE` and `PROGRAMS`, the folder's path, and beside them the folder
as who asks has opened it. It answers an errno, and with 0 goes the mount. It leaves when it is asked no more.
"""

import errno
import os
import socket
import struct

from pyexec_guest.confine import kernel, mounts, privileges
from pyexec_guest.confine.namespaces import write_map

WRITABLE = 1
PROGRAMS = 2
LONGEST = 4096
ANSWER = struct.Struct("<i")


def main(control_fd: int) -> None:
    """Serve until who asks hangs up."""
    control = socket.socket(fileno=control_fd)
    control.set_inheritable(False)
    failure: OSError | None = None
    try:
        _enter()
    except OSError as error:
        failure = error
    while True:
        data, descriptors, _flags, _ = socket.recv_fds(control, 1 + LONGEST, 4)
        if not data:
            return
        try:
            _answer(control, data, descriptors, failure)
        except OSError as error:
            control.send(ANSWER.pack(error.errno or errno.EIO))
        finally:
            for fd in descriptors:
                os.close(fd)


def _enter() -> None:
    user, group = os.geteuid(), os.getegid()
    privileges.be_opaque(opaque=False)
    # What is mounted later on the machine appears here too; nothing of ours appears there.
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
    write_map(user, user, group, group)


def _answer(control: socket.socket, data: bytes, descriptors: "list[int]", failure: "OSError | None") -> None:
    if failure is not None:
        raise failure
    # What it was opened as lies in another mount namespace, of which nothing can be taken here.
    folder = os.open(data[1:], os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if len(descriptors) != 1 or not os.path.sameopenfile(folder, descriptors[0]):
            raise OSError(errno.ESTALE, "another folder")
        mount = mounts.take(folder, writable=bool(data[0] & WRITABLE), programs=bool(data[0] & PROGRAMS))
    finally:
        os.close(folder)
    try:
        socket.send_fds(control, [ANSWER.pack(0)], [mount])
    finally:
        os.close(mount)
