"""A sandbox with its control groups: what it may use, what it used, and its end."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from pyexec.domain.errors import SandboxNotMadeError
from pyexec.domain.limits import SandboxLimits
from pyexec.sandbox.forks import Entrances, ForkServer, Group, NotMadeError, Order, Sandbox, Spent, Usage
from pyexec.sandbox.guarding import start_ticks

READY_SECONDS = 20.0
FORK_SECONDS = 20.0
GONE_SECONDS = 10.0


class Cause(StrEnum):
    """Why a sandbox has ended."""

    EXIT = "exit"
    SIGNAL = "signal"
    OUT_OF_MEMORY = "out_of_memory"
    KILLED = "killed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a sandbox has ended; nothing in it can have made this up.

    `value` is the exit code or the signal. `memory_limit` and `peak_memory` are bytes, 0 where they are not known.
    """

    cause: Cause
    value: int = 0
    memory_limit: int = 0
    peak_memory: int = 0


class Box:
    """One sandbox of the bubblewrap wall. Whoever holds it must `close` it.

    Attributes:
        reason: Why it was ended from outside (`end`), as the end of a sentence.
        on_closed: Hears that nothing is left of it.
    """

    def __init__(self, sandbox: Sandbox, group: Group | None, limits: SandboxLimits) -> None:
        self.sandbox = sandbox
        self.group = group
        self.limits = limits
        self.reason: str | None = None
        self.on_closed: Callable[[], None] | None = None
        self._share = 1.0
        self._gives_way = False
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether it has been closed."""
        return self._closed

    @property
    def socket(self) -> int:
        """The descriptor of the connection to the guest."""
        return self.sandbox.socket.fileno()

    @cached_property
    def process(self) -> tuple[int, int]:
        """The pid of its first process on this machine, and when that was started, in ticks since the boot."""
        pid = self.sandbox.pid()
        return pid, start_ticks(pid)

    def begin(self) -> None:
        """Hold it to its share of the processors from now on, which it is not before it has come up."""
        if self.group is not None:
            self.group.limit_cpu()

    def weigh(self, share: float, *, gives_way: bool = False) -> None:
        """Give it this many times, at most 100, the processor time of others where there is not enough for all.

        Where it gives way it has as much as all that do, and only what the others leave; or its share, on machines that
        know nothing of giving way.
        """
        if self.group is None or self._closed:
            return
        with suppress(OSError):  # It has just gone; or has as much as the others.
            if self._gives_way and not gives_way:
                self.group.give_way(False)
                self._gives_way, self._share = False, 1.0
            if not self._gives_way and share != self._share:
                self.group.weigh(share)
                self._share = share
            if gives_way and not self._gives_way:
                self.group.give_way(True)
                self._gives_way = True

    def usage(self) -> Usage | None:
        """Return what it uses and has used; None where there are no control groups, or it is closed."""
        if self.group is None or self._closed:
            return None
        return self.group.usage()

    def spent(self) -> Spent | None:
        """Return what it has used up to now; None where there are no control groups, or it is closed."""
        if self.group is None or self._closed:
            return None
        return self.group.spent()

    def cpu_seconds(self) -> float | None:
        """Return the processor time it has used up to now; None as above, or where it is just being closed."""
        if self.group is None or self._closed:
            return None
        try:
            return self.group.cpu_seconds()
        except OSError:
            return None

    def interrupt(self) -> None:
        """Interrupt what its guest is doing, as Ctrl-C would."""
        self.sandbox.interrupt()

    def wait_ended(self, timeout: float) -> Ending | None:
        """Wait for its end and tell how it was; None when it still lives after so many seconds. Blocks."""
        report = self.sandbox.wait_ended(timeout)
        # Its descriptors are closed a little before it is gone.
        if report is None and not self.sandbox.wait_gone(GONE_SECONDS if self.sandbox.is_ending() else 0):
            return None
        usage = self.usage()
        peak = usage.peak_memory if usage is not None else 0
        memory = self.limits.memory if usage is not None else 0
        killed = report is None or os.WIFSIGNALED(report.value)
        if killed and usage is not None and usage.out_of_memory:
            return Ending(cause=Cause.OUT_OF_MEMORY, memory_limit=memory, peak_memory=peak)
        if report is None:
            return Ending(cause=Cause.KILLED, memory_limit=memory, peak_memory=peak)
        if killed:
            number = os.WTERMSIG(report.value)
            return Ending(cause=Cause.SIGNAL, value=number, memory_limit=memory, peak_memory=peak)
        code = os.WEXITSTATUS(report.value)
        return Ending(cause=Cause.EXIT, value=code, memory_limit=memory, peak_memory=peak)

    def end(self, reason: str) -> None:
        """End it for a reason that its owner shall be told; does not wait for that."""
        self.reason = self.reason or reason
        self.sandbox.kill()

    def kill(self) -> bool:
        """End all of it; tell whether nothing is left. Blocks until then, within a bound."""
        self.sandbox.kill()
        return self.sandbox.wait_gone(GONE_SECONDS)

    def close(self) -> None:
        """End it, and remove what it had. Blocks for some milliseconds."""
        if self._closed:
            return
        self.kill()
        self._closed = True
        self.sandbox.close()
        if self.group is not None:
            self.group.remove()
        if self.on_closed is not None:
            self.on_closed()


def order_for(limits: SandboxLimits, user: int) -> Order:
    """Return what a fork server is told about a sandbox."""
    return Order(
        number=0,
        user=user,
        work_size=limits.workspace,
        work_files=limits.files,
        temporary_size=limits.temporary,
        temporary_files=limits.files // 4,
        shared_size=limits.temporary,
        shared_files=limits.files // 4,
        data=limits.memory - limits.memory_reserve,
        processes=limits.processes + 1,
        open_files=limits.open_files,
        file_size=limits.workspace,
    )


def fork_box(
    server: ForkServer,
    limits: SandboxLimits,
    user: int,
    group: Group | None,
    folders: tuple[tuple[int, str], ...] = (),
) -> Box:
    """Have a sandbox forked and wait until its guest is about to run; blocks for some 10 ms.

    The group is this call's from now on. `folders` are mounts and their places inside.

    Raises:
        ForkServerGoneError: The fork server does not answer.
        SandboxNotMadeError: It could not be made; nothing of it is left.
    """
    entrances: tuple[int, ...] = ()
    sandbox: Sandbox | None = None
    try:
        entrances = group.open_entrances() if group is not None else ()
        sandbox = server.fork(order_for(limits, user), Entrances(entrances, folders), FORK_SECONDS)
        sandbox.wait_ready(READY_SECONDS)
        if group is not None:
            group.watch(sandbox.first)
    except BaseException as error:
        if sandbox is not None:
            sandbox.kill()
            sandbox.wait_gone(GONE_SECONDS)
            sandbox.close()
        if group is not None:
            group.kill()
            group.remove()
        if isinstance(error, NotMadeError | OSError):
            raise SandboxNotMadeError(f"A sandbox could not be made: {error}.") from error
        raise
    finally:
        for fd in entrances:
            with suppress(OSError):
                os.close(fd)
    return Box(sandbox, group, limits)
