"""The launcher: a small process that forks keepers, so that a keeper is ready in a millisecond or two.

A server starts one and holds the other end of its control socket. Each request on it is one byte and two
descriptors: the connection on which the new keeper gets its orders, and the lock that says it lives. Orders never
pass through the launcher, so no keeper inherits what another was told. Keepers are nobody's children: they live on
when the launcher and the server are gone.
"""

import gc
import os
import signal
import socket
import sys
import traceback

from pyexec_guest.keeper.guard import Guard


def main(control_fd: int) -> None:
    """Serve requests until the server hangs up."""
    control = socket.socket(fileno=control_fd)
    gc.collect()
    gc.freeze()
    control.sendall(b"r")
    while True:
        try:
            request, fds, _flags, _address = socket.recv_fds(control, 1, 2)
        except OSError:
            return
        if not request:
            return
        if len(fds) == 2:
            _launch(control, *fds)
        for fd in fds:
            os.close(fd)


def _launch(control: socket.socket, connection_fd: int, lock_fd: int) -> None:
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    status = 1
    try:
        os.setsid()
        if os.fork() == 0:
            control.close()
            for fd in (connection_fd, lock_fd):
                os.set_inheritable(fd, False)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            _guard(socket.socket(fileno=connection_fd))
        status = 0
    finally:
        # Nothing of the launcher may run in its copies, whatever went wrong in them.
        sys.stderr.flush()
        os._exit(status)


def _guard(connection: socket.socket) -> None:
    """Be a keeper; a fault of ours is noted beside the log, since nobody reads this process's stderr."""
    guard = Guard(connection)
    try:
        guard.run()
    except BaseException:
        with open(os.path.join(guard.folder, "keeper-error.txt"), "w", encoding="utf-8") as file:
            traceback.print_exc(file=file)
        raise
