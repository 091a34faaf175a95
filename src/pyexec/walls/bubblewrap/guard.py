"""Guarding one execution that runs in a sandbox of its own, on a thread of its own."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyexec.domain.errors import PyexecError, WallUnavailableError
from pyexec.domain.limits import MEGABYTE
from pyexec.processes.programs import Program
from pyexec.sandbox.guarding import (
    Ending,
    Guarding,
    GuestConnection,
    GuestLink,
    OutputPump,
    StartError,
    Usage,
    boot_id,
    exit_of,
    signal_name,
    start_ticks,
)
from pyexec.storage import artifacts
from pyexec.walls.bubblewrap.boxes import Box, Cause
from pyexec.walls.bubblewrap.boxes import Ending as BoxEnding

INTERRUPT_SECONDS = 0.8
CLOSE_SECONDS = 10.0

TakeBox = Callable[[Path], Box]
"""Takes the folder of an environment; returns a sandbox that nobody has used, after a while."""


class SandboxGuard(Guarding):
    """Guards one execution, which is one turn of a guest.

    Args:
        orders: What the server has ordered.
        connection: The server's.
        take_box: See `TakeBox`.
    """

    def __init__(self, orders: dict[str, Any], connection: socket.socket, take_box: TakeBox) -> None:
        super().__init__(orders, connection)
        self._take_box = take_box
        self._box: Box | None = None
        self._woken, self._waking = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.loop.add_reader(self._woken, self._on_wake)

    def run(self) -> None:
        """See `Guarding.run`."""
        try:
            super().run()
        finally:
            if self._box is not None:
                self._box.close()
            self.loop.close()
            for fd in (self._woken, self._waking):
                os.close(fd)

    def end(self, reason: str) -> None:
        """Have it end; may be called from any thread."""
        self.stop.ask(reason)
        self._wake()

    def work(self) -> dict[str, Any]:
        """See `Guarding.work`."""
        return self.prepare() or self._run()

    def abandon(self) -> None:
        """See `Guarding.abandon`."""
        if self._box is not None:
            self._box.kill()

    def run_step(self, step: dict[str, Any], pump: OutputPump, deadline: float) -> Ending:
        """See `Guarding.run_step`."""
        try:
            program = Program(step["argv"], env=step["env"], cwd=self.orders["cwd"], stdin=step["stdin"])
        except OSError as error:
            raise StartError(f"could not run {step['argv'][0]}: {error.strerror}") from error
        pump.attach(program.output)
        ended = self._when_readable(program.over)
        self.loop.run_until(lambda: bool(ended) or self.stop.asked, deadline)
        ending = Ending()
        if not ended:
            ending.cause = "cancelled" if self.stop.asked else "timed_out"
            ending.reason = self.stop.reason
            self.loop.remove_reader(program.over)
            program.end()
        ending.exit_code, ending.signal = exit_of(program.close())
        pump.drain()
        return ending

    # -- in the sandbox --------------------------------------------------------------------------------------------

    def _run(self) -> dict[str, Any]:
        try:
            box = self._wait_box()
        except PyexecError as error:
            return self.describe(Ending(cause="start_failed", reason=error.sentence()))
        if box is None:
            return self.cancelled()
        self._box = box
        out, err = self.open_pumps()
        for pump, fd in zip((out, err), box.sandbox.output, strict=True):
            os.set_blocking(fd, False)
            pump.attach(os.dup(fd))
        ended = self._when_readable(box.sandbox.news)
        link = GuestLink(
            self.loop,
            self.folder,
            self.orders["guest"],
            lambda: [out.catch_up(), err.catch_up()],
            self.on_display,
            connection=GuestConnection(box.sandbox.socket),
            files=os.path.join(self.folder, artifacts.FOLDER),
        )
        try:
            self.on_start(_started(box))
            ending = self._until_ended(box, ended, link)
        finally:
            link.close()
            out.close()
            err.close()
        return self.describe(ending)

    def _wait_box(self) -> Box | None:
        """Wait for a sandbox; None when the execution is to end before there is one.

        Raises:
            PyexecError: There will be none.
        """
        waiting = _Waiting(self._take_box, _environment_of(self.orders), self._wake)
        self.loop.run_until(lambda: waiting.over or self.stop.asked, None)
        return waiting.take()

    def _until_ended(self, box: Box, ended: list[bool], link: GuestLink) -> Ending:
        timeout: float = self.orders["timeout"]
        deadline = time.monotonic() + timeout if timeout else None
        ending = Ending()
        self.loop.run_until(
            lambda: link.ended or bool(ended) or self.stop.asked or link.broken is not None, deadline
        )
        if link.broken is not None:
            # However it may go on or end from here, it is not ours any more.
            ending.cause = "signalled"
            ending.reason = f"Its sandbox was ended: the interpreter in it said what none of ours says ({link.broken})."
        elif link.exit_code is not None:
            # What is left in it is ended with it; nobody has to wait for that.
            ending.cause, ending.exit_code = "exited", link.exit_code
        elif not ended:
            ending.cause = "cancelled" if self.stop.asked else "timed_out"
            ending.reason = self.stop.reason if self.stop.asked else f"It ran longer than {timeout:g} s."
            self._escalate(box, link, ended, ending)
        if link.exit_code is None:
            how = box.wait_ended(CLOSE_SECONDS) if link.broken is None else None
            box.kill()
            _add(ending, how)
        usage = box.usage()
        if usage is not None:
            self.usage = Usage(
                # Where only the sum of both is known it counts as the program's own.
                user_seconds=usage.user_seconds or usage.cpu_seconds - usage.system_seconds,
                system_seconds=usage.system_seconds,
                peak_rss_bytes=usage.peak_memory,
            )
            if usage.out_of_memory and ending.cause != "out_of_memory":
                told = f"A process in it was killed because all together reached the limit of {_megabytes(box)} MB."
                ending.reason = f"{ending.reason} {told}" if ending.reason else told
        return ending

    def _escalate(self, box: Box, link: GuestLink, ended: list[bool], ending: Ending) -> None:
        """Interrupt, so that what was shown up to then arrives; then kill."""
        if not self.stop.kill:
            self._note(signal.SIGINT, ending)
            # The guest repeats it until it has been noticed; one that speaks no more gets the signal.
            if link.is_open:
                link.interrupt()
            else:
                box.interrupt()
            self.loop.run_until(
                lambda: link.ended or bool(ended) or self.stop.kill, time.monotonic() + INTERRUPT_SECONDS
            )
            if link.exit_code is not None:
                ending.exit_code = link.exit_code
                return
        if not ended:
            self._note(signal.SIGKILL, ending)
            box.kill()

    def _note(self, number: int, ending: Ending) -> None:
        ending.stopped_by = signal_name(number)
        self.on_step("stopping", ending.stopped_by)

    def _when_readable(self, fd: int) -> list[bool]:
        """Return a list that has an entry once a descriptor can be read."""
        seen: list[bool] = []

        def note() -> None:
            self.loop.remove_reader(fd)
            seen.append(True)

        self.loop.add_reader(fd, note)
        return seen

    def _on_wake(self) -> None:
        os.read(self._woken, 4096)

    def _wake(self) -> None:
        with suppress(BlockingIOError):
            os.write(self._waking, b"\0")


class _Waiting:
    """Waits for a sandbox on a thread, so that whoever wants the execution to end is heard meanwhile."""

    def __init__(self, take_box: TakeBox, environment: Path, wake: Callable[[], None]) -> None:
        self._take_box = take_box
        self._environment = environment
        self._wake = wake
        self._lock = threading.Lock()
        self._given_up = False
        self._box: Box | None = None
        self._error: PyexecError | None = None
        self.over = False
        self._thread = threading.Thread(target=self._work, name="sandbox")
        self._thread.start()

    def take(self) -> Box | None:
        """Return the sandbox; None when it is not there yet, and then nobody will have it.

        Raises:
            PyexecError: There will be none.
        """
        with self._lock:
            self._given_up = True
            if self._error is not None:
                raise self._error
            return self._box

    def _work(self) -> None:
        box: Box | None = None
        error: PyexecError | None = WallUnavailableError(
            "A fault of ours kept the sandbox from being made.", hint="The log of the keeper of sandboxes says more."
        )
        try:
            box, error = self._take_box(self._environment), None
        except PyexecError as raised:
            error = raised
        except FileNotFoundError:
            error = WallUnavailableError(f"The environment {self._environment} is gone.", hint="Try again.")
        finally:
            self._hand_over(box, error)

    def _hand_over(self, box: Box | None, error: PyexecError | None) -> None:
        with self._lock:
            self._box, self._error, self.over = box, error, True
            if not self._given_up:
                self._wake()
                return
        if box is not None:
            box.close()


def _megabytes(box: Box) -> int:
    return box.limits.memory // MEGABYTE


def _environment_of(orders: dict[str, Any]) -> Path:
    return Path(orders["argv"][orders["python_at"]]).parent.parent


def _started(box: Box) -> dict[str, Any]:
    pid = box.sandbox.pid()
    return {"boot": boot_id(), "pid": pid, "start_ticks": start_ticks(pid), "group": None, "pipes": []}


def _add(ending: Ending, how: BoxEnding | None) -> None:
    """Add how a sandbox has ended; None: nothing could end it."""
    if how is None or how.cause is Cause.KILLED:
        ending.exit_code, ending.signal = exit_of(signal.SIGKILL)
        if ending.cause is None:
            ending.cause = "signalled"
            ending.reason = "All of its sandbox was ended from outside."
        return
    if how.cause is Cause.EXIT:
        ending.exit_code = how.value
    else:
        ending.exit_code, ending.signal = exit_of(how.value or signal.SIGKILL)
    if ending.cause is None:
        if how.cause is Cause.OUT_OF_MEMORY:
            ending.cause = "out_of_memory"
            ending.reason = (
                f"It needed more memory than its limit of {how.memory_limit // MEGABYTE} MB "
                f"(at most it had {how.peak_memory / MEGABYTE:.0f} MB)."
            )
        else:
            ending.cause = "exited" if how.cause is Cause.EXIT else "signalled"
