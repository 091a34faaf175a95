"""The owner's side: a fork server, and the sandboxes it forks. Everything held here is a descriptor."""

import fcntl
import os
import select
import signal
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace

from pyexec_guest.orders import (
    ANSWER_BYTES,
    MOST_DESCRIPTORS,
    REPORT_BYTES,
    Answer,
    News,
    Order,
    OrderError,
    Report,
    Stage,
    pack_order,
    pack_places,
    unpack_answer,
    unpack_report,
)

OUTPUT_PIPE_BYTES = 1024 * 1024
_PIPES = 3
_SET_PIPE_SIZE = getattr(fcntl, "F_SETPIPE_SZ", 1031)


class ForkServerGoneError(Exception):
    """The fork server has ended, or does not answer; its sandboxes may live on."""


class NotMadeError(Exception):
    """A sandbox could not be made; nothing has run in it."""


class Sandbox:
    """One sandbox. Who holds this object owns it; it ends when its guest does, or by `kill`.

    Attributes:
        socket: The connection to the guest.
        first: The pidfd of its first process, with which all of it ends.
        news: The pipe on which the fork tells how it fares.
        output: The pipes that are its standard output and error, to read from.
    """

    def __init__(self, connection: socket.socket, first: int, news: int, output: "tuple[int, int]") -> None:
        self.socket = connection
        self.first = first
        self.news = news
        self.output = output
        for fd in output:
            os.set_blocking(fd, False)
        self._ended: Report | None = None

    def wait_ready(self, timeout: float) -> None:
        """Wait until the guest is about to run, all its limits being in force; blocks.

        Raises:
            NotMadeError: It never came to that.
        """
        report = self._next(timeout)
        if report is None or report.news is not News.READY:
            raise NotMadeError(_why(report))

    def wait_ended(self, timeout: float) -> "Report | None":
        """Wait until the guest has ended; blocks.

        Returns: How, as the kernel has told the first process; None when that was killed too, or it still runs.
        """
        if self._ended is None:
            report = self._next(timeout)
            self._ended = report if report is not None and report.news is News.ENDED else None
        return self._ended

    def is_alive(self) -> bool:
        """Tell whether anything of it is left."""
        return not _readable(self.first, 0)

    def is_ending(self) -> bool:
        """Tell whether its first process has ended or is about to: there is nobody left who could tell more."""
        return _readable(self.news, 0)

    def wait_gone(self, timeout: float) -> bool:
        """Wait until nothing of it is left; blocks. Tell whether it is so."""
        return _readable(self.first, timeout)

    def pid(self) -> int:
        """Return the pid of its first process on this machine; -1 once that is gone."""
        return _pid_of(self.first)

    def interrupt(self) -> None:
        """Have the guest and its process group get SIGINT."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """End it, and all that runs in it, whatever it may do against that."""
        self._signal(signal.SIGKILL)

    def close(self) -> None:
        """Let go of the descriptors, having ended it."""
        self.kill()
        self.socket.close()
        for fd in (self.first, self.news, *self.output):
            with suppress(OSError):
                os.close(fd)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.first, number)

    def _next(self, timeout: float) -> "Report | None":
        if not _readable(self.news, timeout):
            return None
        with suppress(OrderError):
            return unpack_report(os.read(self.news, REPORT_BYTES))
        return None


@dataclass(frozen=True)
class Entrances:
    """Descriptors that one sandbox takes along.

    Attributes:
        groups: `cgroup.procs` of each control group it shall be in.
        folders: Mounts of folders of the machine (`confine.mounts.take`), each with its place inside.
    """

    groups: "tuple[int, ...]" = ()
    folders: "tuple[tuple[int, str], ...]" = ()


class ForkServer:
    """A fork server, from outside. May be used from several threads.

    Args:
        control: The SEQPACKET connection.
        first: The pidfd of the first process behind the outer wall, with which all its sandboxes end.
    """

    def __init__(self, control: socket.socket, first: int) -> None:
        self.control = control
        self.first = first
        self._lock = threading.Lock()
        self._number = 0

    def wait_ready(self, timeout: float) -> None:
        """Wait until it has imported everything; blocks.

        Raises:
            ForkServerGoneError: It cannot serve, has ended without a word, or says none.
        """
        answer, descriptors = self._receive(timeout)
        _close(descriptors)
        if answer.error:
            raise ForkServerGoneError(answer.text.strip() or os.strerror(answer.error))

    def fork(self, order: Order, entrances: Entrances, timeout: float) -> Sandbox:
        """Have a sandbox forked; blocks for some milliseconds, until there is a process, not until that is ready.

        The order's number, and how many folders there are, is given by this object.

        Raises:
            ForkServerGoneError: The fork server does not answer.
            NotMadeError: It could not fork.
            OrderError: There can be no such folders.
        """
        order = replace(order, folders=len(entrances.folders))
        places = _places([place for _, place in entrances.folders])
        ours, theirs = socket.socketpair()
        pipes = [os.pipe2(os.O_CLOEXEC) for _ in range(_PIPES)]
        news, *output = (reading for reading, _ in pipes)
        writing = [fd for _, fd in pipes]
        for fd in output:
            # Small pipes make a sandbox that prints a lot wait; where there is no room for large ones, they work too.
            with suppress(OSError):
                fcntl.fcntl(fd, _SET_PIPE_SIZE, OUTPUT_PIPE_BYTES)
        try:
            with theirs:
                try:
                    mounts = [mount for mount, _ in entrances.folders]
                    taken = [theirs.fileno(), *writing, *places, *mounts, *entrances.groups]
                    first = self._ordered(order, taken, timeout)
                finally:
                    _close([*writing, *places])
        except BaseException:
            ours.close()
            _close([news, *output])
            raise
        return Sandbox(ours, first, news, (output[0], output[1]))

    def pid(self) -> int:
        """Return the pid, on this machine, of the first process behind the outer wall; -1 once it is gone."""
        return _pid_of(self.first)

    def is_alive(self) -> bool:
        """Tell whether it still serves, as far as one can tell without asking."""
        return not _hung_up(self.control)

    def is_inhabited(self) -> bool:
        """Tell whether there is any process left behind the outer wall."""
        return not _readable(self.first, 0)

    def retire(self) -> None:
        """Let it end; its sandboxes live on."""
        with self._lock:
            self.control.close()

    def destroy(self, timeout: float) -> bool:
        """End it and all its sandboxes; tell whether nothing is left. Blocks."""
        self.retire()
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.first, signal.SIGKILL)
        return _readable(self.first, timeout)

    def close(self) -> None:
        """Let go of the descriptors."""
        self.control.close()
        with suppress(OSError):
            os.close(self.first)

    def _ordered(self, order: Order, descriptors: "list[int]", timeout: float) -> int:
        with self._lock:
            self._number += 1
            number = self._number
            numbered = replace(order, number=number)
            try:
                socket.send_fds(self.control, [pack_order(numbered)], descriptors)
            except OSError as error:
                raise ForkServerGoneError(f"it takes no orders: {error.strerror}") from error
            answer, received = self._receive(timeout)
        if answer.number != number or len(received) != (0 if answer.error else 1):
            _close(received)
            # What it says from now on cannot be told apart.
            self.retire()
            raise ForkServerGoneError(f"it answers what was not asked: {answer.text or answer}")
        if answer.error:
            raise NotMadeError(answer.text or f"the fork server could not fork: {os.strerror(answer.error)}")
        return received[0]

    def _receive(self, timeout: float) -> "tuple[Answer, list[int]]":
        if not _readable(self.control.fileno(), timeout):
            raise ForkServerGoneError("it does not answer in time")
        descriptors: list[int] = []
        try:
            data, descriptors, _flags, _ = socket.recv_fds(self.control, ANSWER_BYTES + 1, MOST_DESCRIPTORS)
            if not data:
                raise ForkServerGoneError("it has ended")
            for fd in descriptors:
                os.set_inheritable(fd, False)
            return unpack_answer(data), descriptors
        except (OSError, OrderError) as error:
            _close(descriptors)
            raise ForkServerGoneError(f"it cannot be understood: {error}") from error


def _places(places: "list[str]") -> "list[int]":
    """Return a file in memory that tells these places; none where there are none."""
    if not places:
        return []
    data = pack_places(places)
    fd = os.memfd_create("places", os.MFD_CLOEXEC)
    os.write(fd, data)
    return [fd]


def _why(report: "Report | None") -> str:
    if report is None:
        return "it does not come up, or was killed on its way"
    if report.news is not News.FAILED:
        return f"it said {report} before it was ready"
    try:
        stage = Stage(report.value).name.lower().replace("_", " ")
    except ValueError:
        stage = f"step {report.value}"
    return f"{stage}: {os.strerror(report.error) if report.error else 'a fault of ours'}"


def _pid_of(pidfd: int) -> int:
    with open(f"/proc/self/fdinfo/{pidfd}", encoding="ascii") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("Pid:")), -1)


def _readable(fd: int, timeout: float) -> bool:
    waiting = select.poll()
    waiting.register(fd, select.POLLIN)
    end = time.monotonic() + timeout
    while not waiting.poll(max(0.0, end - time.monotonic()) * 1000):
        if time.monotonic() >= end:
            return False
    return True


def _hung_up(connection: socket.socket) -> bool:
    if connection.fileno() < 0:
        return True
    waiting = select.poll()
    waiting.register(connection.fileno(), 0)
    return any(events & (select.POLLHUP | select.POLLERR) for _, events in waiting.poll(0))


def _close(descriptors: "list[int]") -> None:
    for fd in descriptors:
        os.close(fd)
