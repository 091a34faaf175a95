"""The launcher: a small process that keeps a keeper ready, so that a run need not wait for one.

A server starts one and holds the other end of its control socket. Each request on it is one byte and two
descriptors: the connection on which the keeper gets its orders, and the lock that says it lives. Orders never pass
through the launcher, so no keeper inherits what another was told. Keepers are nobody's children: they live on when
the launcher and the server are gone. The one that waits has its control group made and entered already, which costs
more than all the rest of a start, and has forked the process that will become the program; it leaves with the
launcher.
"""

import encodings.ascii
import gc
import os
import resource
import signal
import socket
import sys
import traceback
from contextlib import suppress

from pyexec_guest.keeper import cgroup
from pyexec_guest.keeper.ahead import ForkedAhead
from pyexec_guest.keeper.child import remember_changed_signals
from pyexec_guest.keeper.guard import Guard
from pyexec_guest.keeper.tree import GROUP_PREFIX, Tree

# Every keeper needs these, and would import them for itself.
_AHEAD = (encodings.ascii, resource)


def main(control_fd: int) -> None:
    """Serve requests until the server hangs up."""
    control = socket.socket(fileno=control_fd)
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    remember_changed_signals()
    gc.collect()
    gc.freeze()
    spare = _fork_spare(control)
    control.sendall(b"r")
    cgroup.remove_abandoned(GROUP_PREFIX)
    while True:
        try:
            request, fds, _flags, _address = socket.recv_fds(control, 1, 2)
        except OSError:
            return
        if not request:
            return
        if len(fds) == 2 and not _hand_on(spare, fds):
            spare.close()
            spare = _fork_spare(control)
            _hand_on(spare, fds)
        # Before the next one is forked: it must not hold what belongs to this one, least of all its lock.
        for fd in fds:
            os.close(fd)
        spare.close()
        spare = _fork_spare(control)


def _hand_on(spare: socket.socket, fds: "list[int]") -> bool:
    """Give a request to the keeper that waits; tell whether it was still there to take it."""
    try:
        socket.send_fds(spare, [b"k"], fds)
    except OSError:
        return False
    return True


def _fork_spare(control: socket.socket) -> socket.socket:
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid:
        theirs.close()
        os.waitpid(pid, 0)
        return ours
    status = 1
    try:
        os.setsid()
        if os.fork() == 0:
            control.close()
            ours.close()
            _wait_and_guard(theirs)
        status = 0
    finally:
        # Nothing of the launcher may run in its copies, whatever went wrong in them.
        sys.stderr.flush()
        os._exit(status)


def _wait_and_guard(requests: socket.socket) -> None:
    """Be a keeper, once somebody has something to guard."""
    tree = Tree()
    ahead: ForkedAhead | None = None
    try:
        with suppress(OSError):  # Too many processes; that may be over when it is needed.
            ahead = ForkedAhead([requests])
        _request, fds, _flags, _address = socket.recv_fds(requests, 1, 2)
        requests.close()
        if len(fds) == 2:
            for fd in fds:
                os.set_inheritable(fd, False)
            _guard(socket.socket(fileno=fds[0]), tree, ahead)
    finally:
        if ahead is not None:
            ahead.release()
        tree.close()


def _guard(connection: socket.socket, tree: Tree, ahead: "ForkedAhead | None") -> None:
    """Guard one execution; a fault of ours is noted beside its log, since nobody reads this process's stderr."""
    guard = Guard(connection, tree, ahead)
    try:
        guard.run()
    except BaseException:
        with open(os.path.join(guard.folder, "keeper-error.txt"), "w", encoding="utf-8") as file:
            traceback.print_exc(file=file)
        raise
