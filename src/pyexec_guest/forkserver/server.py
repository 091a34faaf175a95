"""The fork server: imports what sandboxes need, once, and forks into a new one at each order."""

import errno
import gc
import importlib
import os
import signal
import socket
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from pyexec_guest.confine import privileges, seccomp
from pyexec_guest.confine.kernel import CLONE_NEWPID, close_from, setns, unshare
from pyexec_guest.forkserver import pages, randomness
from pyexec_guest.forkserver.child import Belongings, enter
from pyexec_guest.orders import (
    MOST_DESCRIPTORS,
    MOST_TEXT,
    ORDER_BYTES,
    Answer,
    Order,
    OrderError,
    pack_answer,
    unpack_order,
)

FEWEST_DESCRIPTORS = 4
_CONTROL = 3
_CHILD = frozenset({signal.SIGCHLD})


class NotSingleThreadedError(Exception):
    """Something that was imported ahead has started a thread, which no fork would have."""


def main(control_fd: int, guest: str, modules: "Sequence[str]") -> None:
    """Serve orders until the owner hangs up.

    Args:
        control_fd: The SEQPACKET socket that orders come from.
        guest: What runs in a sandbox: a function's module and name, as `package.module:function`. Where it has a
            function `prepare`, that is called once, before the first fork.
        modules: What is imported ahead; with a function's name (`module:function`) that is called too.
    """
    # Under another pid than a guest has in its own namespace (2): libraries tell forks apart by it.
    for _ in range(2):
        if os.fork():
            os._exit(0)
    if control_fd != _CONTROL:
        os.dup2(control_fd, _CONTROL)
    close_from(_CONTROL + 1)
    control = socket.socket(fileno=_CONTROL)
    control.set_inheritable(False)
    try:
        own = _prepare(guest, modules)
    except BaseException:
        control.send(pack_answer(Answer(0, errno.ENOEXEC, traceback.format_exc()[-MOST_TEXT:])))
        raise
    for number in (0, 1, 2):
        os.dup2(own.null, number)
    signal.signal(signal.SIGCHLD, _reap)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    own_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    gc.collect()
    gc.freeze()
    pages.gather()
    _check_single_threaded()
    control.send(pack_answer(Answer(0)))
    while _serve_one(control, own_namespace, own):
        pass


def _prepare(guest: str, modules: "Sequence[str]") -> Belongings:
    for name in modules:
        install = _imported(name)
        if install is not None:
            install()
        _check_single_threaded(name)
    run: Callable[[int], int | None] | None = _imported(guest)
    if run is None:
        raise ValueError(f"{guest} names no function")
    prepare: Callable[[], None] | None = getattr(run, "prepare", None)
    if prepare is not None:
        prepare()
    # Each fork does this for itself. Done once before, it need not begin there with all that OpenSSL has to set up.
    randomness.begin_anew()
    _check_single_threaded(guest)
    machine = seccomp.this_machine()
    return Belongings(
        guest=run,
        sandbox_filter=seccomp.Filter(seccomp.sandbox_program(machine)),
        reaper_filter=seccomp.Filter(seccomp.reaper_program(machine)),
        inherited=_data_bytes(),
        last_capability=privileges.last_capability(),
        null=os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC),
    )


def _imported(name: str) -> Any:
    """Import a module; return the function of it that is named too, if one is."""
    module, _, function = name.partition(":")
    found = importlib.import_module(module)
    return getattr(found, function) if function else None


def _data_bytes() -> int:
    """Return how much memory of its own this process has, by what the kernel holds against a limit of that."""
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        return next((int(line.split()[1]) * 1024 for line in file if line.startswith("VmData:")), 0)


def _check_single_threaded(culprit: str = "") -> None:
    """See that there is one thread: no other would be in a fork.

    Args:
        culprit: What was imported since this was found to be so.
    """
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        threads = next((line.split()[1] for line in file if line.startswith("Threads:")), "?")
    if threads != "1":
        raise NotSingleThreadedError(
            f"{culprit or 'Something'} starts threads when it is imported ({threads} there are, it must be one), so it "
            "cannot be imported ahead. Leave it out there: code in a sandbox can import it as ever."
        )


def _reap(_number: int, _frame: object) -> None:
    """Reap the forks that have ended; who wants to know of it has a pidfd or a pipe."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve_one(control: socket.socket, own_namespace: int, own: Belongings) -> bool:
    """Take an order and answer it; tell whether there may be more."""
    try:
        data, descriptors, flags, _ = socket.recv_fds(control, ORDER_BYTES + 1, MOST_DESCRIPTORS)
    except OSError:
        return False
    if not data:
        return False
    number = 0
    try:
        order = unpack_order(data)
        number = order.number
        _check(order, descriptors, flags)
        _answer(control, order, descriptors, own_namespace, own)
    except OrderError as error:
        control.send(pack_answer(Answer(number, errno.EBADMSG, str(error))))
    except OSError as error:
        control.send(pack_answer(Answer(number, error.errno or errno.EIO)))
    finally:
        for fd in descriptors:
            os.close(fd)
    return True


def _check(order: Order, descriptors: "Sequence[int]", flags: int) -> None:
    if flags & (socket.MSG_CTRUNC | socket.MSG_TRUNC):
        raise OrderError("an order that was cut off")
    order.check()
    if len(descriptors) < FEWEST_DESCRIPTORS + (order.folders and 1 + order.folders):
        raise OrderError("an order without the descriptors that belong to it")


def _answer(
    control: socket.socket, order: Order, descriptors: "Sequence[int]", own_namespace: int, own: Belongings
) -> None:
    # Not reaped before there is a pidfd, however soon it ends.
    signal.pthread_sigmask(signal.SIG_BLOCK, _CHILD)
    try:
        unshare(CLONE_NEWPID)
        try:
            pid = os.fork()
            if pid == 0:
                enter(order, descriptors, own)
        finally:
            setns(own_namespace, CLONE_NEWPID)
        first = os.pidfd_open(pid)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _CHILD)
    try:
        socket.send_fds(control, [pack_answer(Answer(order.number))], [first])
    finally:
        os.close(first)
