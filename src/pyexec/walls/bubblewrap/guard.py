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
from pyexec.processes.programs import Program
from pyexec.sandbox.forks import Spent
from pyexec.sandbox.guarding import (
    PREPARED,
    Ending,
    Guarding,
    GuestLink,
    Orders,
    OutputPump,
    StartError,
    exit_of,
    signal_name,
    turn_request,
)
from pyexec.storage import artifacts
from pyexec.storage.json_files import read_json
from pyexec.walls.bubblewrap.beginning import Begun, environment_of
from pyexec.walls.bubblewrap.endings import add_end, add_reason, started_in, used_since
from pyexec.walls.bubblewrap.folders import shared
from pyexec.walls.bubblewrap.stays import House, Stay
from pyexec.walls.bubblewrap.turnstile import Ticket
from pyexec.walls.bubblewrap.weights import BEGINNING_SECONDS

CLOSE_SECONDS = 10.0
NEWS_SECONDS = 0.2
STARTING = "starting an interpreter with this environment, of which sandboxes are copies"


class SandboxGuard(Guarding):
    """Guards one execution, which is one turn of a guest.

    Args:
        orders: What the server has ordered.
        connection: The server's.
        house: Gives it a sandbox.
        begun: The turn, where the guest has been asked for it already.
        said: Where more than the orders has been read on the connection.
    """

    def __init__(
        self,
        orders: dict[str, Any],
        connection: socket.socket,
        house: House,
        begun: Begun | None = None,
        said: Orders | None = None,
    ) -> None:
        # Before anything else: whoever connects is told where in line it stands.
        self._house = house
        self._begun = begun
        self._ticket = begun.ticket if begun else Ticket(str(orders.get("owner") or ""))
        self._told: list[dict[str, Any]] | None = None
        loop, events = (begun.loop, begun.events) if begun else (None, None)
        self._woken, self._waking = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            super().__init__(orders, connection, loop=loop, events=events, said=said)
        except BaseException:
            os.close(self._woken)
            os.close(self._waking)
            raise
        self._stay = begun.stay if begun else None
        self._weighed = begun is not None
        self._settle_at: float | None = None
        self._over = threading.Lock()
        self.loop.add_reader(self._woken, self._on_wake)

    def run(self) -> None:
        """See `Guarding.run`."""
        try:
            super().run()
        finally:
            self._unweigh()
            if self._stay is not None:
                self._stay.close()
            self.loop.close()
            with self._over:
                for fd in (self._woken, self._waking):
                    os.close(fd)
                self._waking = -1

    def end(self, reason: str) -> None:
        """Have it end; may be called from any thread."""
        self.stop.ask(reason)
        self._wake()

    def wait_turn(self) -> dict[str, Any] | None:
        """See `Guarding.wait_turn`."""
        return None if self._begun else super().wait_turn()

    def work(self) -> dict[str, Any]:
        """See `Guarding.work`."""
        return self.prepare() or self._run()

    def told(self) -> dict[str, Any]:
        """See `Guarding.told`: what the guest said, where it is little, and nothing was printed."""
        printed = any(pump.total for pump in self.pumps or ())
        return {} if printed or self._told is None else {"frames": self._told}

    def waits(self) -> tuple[str, int] | None:
        """See `Guarding.waits`."""
        before = self._house.before(self._ticket)
        return super().waits() if before is None else ("sandbox", before)

    def abandon(self) -> None:
        """See `Guarding.abandon`."""
        if self._stay is not None:
            self._stay.leave(alive=False, reason="its keeper could not go on")

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
        if self._stay is None:
            try:
                self._stay = self._wait_stay()
            except PyexecError as error:
                return self.describe(Ending(cause="start_failed", reason=error.sentence()))
            if self._stay is None:
                return self.cancelled()
            self._house.weights.begin(self._ticket.owner, self._stay.box)
            self._weighed = True
        self._settle_at = time.monotonic() + BEGINNING_SECONDS
        self.loop.add_timer(self._settle)
        return self._run_in(self._stay)

    def _unweigh(self) -> None:
        """Note that it is not at work any more."""
        if self._weighed and self._stay is not None:
            self._weighed = False
            self._house.weights.end(self._ticket.owner, self._stay.box)

    def _settle(self, now: float) -> float | None:
        """See that it has the weight of one that has begun a while ago, when it has, and look after that from then on.

        Returns when there is something to do again.
        """
        weights = self._house.weights
        if self._settle_at is not None and now >= self._settle_at and self._stay is not None:
            self._settle_at = None
            weights.settle(self._ticket.owner, self._stay.box)
        return self._settle_at or (weights.look(now) if self._weighed else None)

    def _run_in(self, stay: Stay) -> dict[str, Any]:
        box, begun = stay.box, self._begun
        late = [] if begun else stay.late()
        out, err = self.open_pumps()
        for pump, fd in zip((out, err), box.sandbox.output, strict=True):
            pump.attach(os.dup(fd))

        def positions() -> list[int]:
            return [out.catch_up(), err.catch_up()]

        ended = self._when_readable(box.sandbox.news)
        before = begun.before if begun else box.spent()
        if begun is None:
            link = GuestLink(
                self.loop,
                self.folder,
                turn_request({**self.orders["guest"], **stay.request}),
                positions,
                self.on_display,
                connection=stay.connection,
                earlier=stay.earlier,
                files=os.path.join(self.folder, artifacts.FOLDER),
            )
        else:
            link = begun.link
        try:
            if begun is None:
                stay.began(link.turn)
                link.note_late(late)
                self.on_start(started_in(box))
            else:
                link.note_in(self.folder, positions, self.on_display)
                self.take_start(begun.started)
            ending = self._until_ended(stay, ended, link, before)
        finally:
            link.close(keep=link.ended)
            self._told = link.kept
            out.close()
            err.close()
            if not ended:
                self.loop.remove_reader(box.sandbox.news)
            self._unweigh()  # Before others have the sandbox, who begin then.
        killed = "an execution in it had to be killed" if ending.stopped_by == "SIGKILL" else None
        told = stay.leave(alive=link.ended and link.broken is None, reason=link.fault or killed)
        if told is None and ending.cause != "exited":
            told = stay.kept
        if told is not None:
            add_reason(ending, told)
        return self.describe(ending)

    def _wait_stay(self) -> Stay | None:
        """Wait for a sandbox; None when the execution is to end before there is one.

        Raises:
            PyexecError: There will be none.
        """
        prefix = environment_of(self.orders)
        session, folders = self.orders.get("session"), shared(self.orders.get("folders") or ())
        packages = read_json(Path(self.folder, PREPARED)).get("package_folder")
        more = Path(packages) if isinstance(packages, str) else None
        if self.orders.get("usual"):
            self._house.keep(prefix)
        ticket = self._ticket
        at_once = self._house.stay_at_once(ticket, prefix, session, folders, more)
        if at_once is not None:
            return at_once
        waiting = _Waiting(lambda: self._house.stay(ticket, prefix, session, folders, more), prefix, self._wake)
        self.loop.run_until(lambda: waiting.over or self.stop.asked, time.monotonic() + NEWS_SECONDS)
        if not waiting.over and self._house.is_starting(prefix):
            self.say_preparing(STARTING)
        self.loop.run_until(lambda: waiting.over or self.stop.asked, None)
        if not waiting.over:
            ticket.give_up()
        return waiting.take()

    def _until_ended(self, stay: Stay, ended: list[bool], link: GuestLink, before: Spent | None) -> Ending:
        box = stay.box
        timeout: float = self.orders["timeout"]
        deadline = time.monotonic() + timeout if timeout else None
        ending = Ending()
        self.loop.run_until(lambda: link.ended or bool(ended) or self.stop.asked or link.broken is not None, deadline)
        if link.broken is not None:
            # However it may go on or end from here, it is not ours any more.
            ending.cause = "signalled"
            ending.reason = f"Its sandbox was ended: the interpreter in it said what none of ours says ({link.broken})."
        elif link.exit_code is not None:
            # What is left in it is ended with it, or stays in its session; nobody has to wait for that.
            ending.cause, ending.exit_code = "exited", link.exit_code
        elif not ended:
            ending.cause = "cancelled" if self.stop.asked else "timed_out"
            ending.reason = self.stop.reason if self.stop.asked else f"It ran longer than {timeout:g} s."
            self._escalate(stay, link, ended, ending)
        elif (why := stay.ended_by()) is not None:
            ending.cause, ending.reason = "cancelled", f"Its session was ended: {why}."
        if link.exit_code is None:
            how = box.wait_ended(CLOSE_SECONDS) if link.broken is None else None
            box.kill()
            add_end(ending, how, box.reason)
        self.usage = used_since(box, ending, before)
        return ending

    def _escalate(self, stay: Stay, link: GuestLink, ended: list[bool], ending: Ending) -> None:
        """Interrupt, so that what was shown up to then arrives; then kill."""
        if self._weighed:
            self._house.weights.hurry(self._ticket.owner, stay.box)
        if not self.stop.kill:
            self._note(signal.SIGINT, ending)
            # The guest repeats it until it has been noticed; one that speaks no more gets the signal.
            if link.is_open:
                link.interrupt()
            else:
                stay.box.interrupt()
            self.loop.run_until(lambda: link.ended or bool(ended) or self.stop.kill, time.monotonic() + stay.patience)
            if link.exit_code is not None:
                ending.exit_code = link.exit_code
                return
        if not ended:
            self._note(signal.SIGKILL, ending)
            stay.box.kill()

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
        with self._over, suppress(BlockingIOError):
            if self._waking >= 0:
                os.write(self._waking, b"\0")


class _Waiting:
    """Waits for a sandbox on a thread, so that whoever wants the execution to end is heard meanwhile."""

    def __init__(self, make: Callable[[], Stay], environment: Path, wake: Callable[[], None]) -> None:
        self._make = make
        self._environment = environment
        self._wake = wake
        self._lock = threading.Lock()
        self._given_up = False
        self._stay: Stay | None = None
        self._error: PyexecError | None = None
        self.over = False
        self._thread = threading.Thread(target=self._work, name="sandbox")
        self._thread.start()

    def take(self) -> Stay | None:
        """Return where it runs; None when that is not there yet, and then nobody will have it.

        Raises:
            PyexecError: There will be none.
        """
        with self._lock:
            self._given_up = True
            if self._error is not None:
                raise self._error
            return self._stay

    def _work(self) -> None:
        stay: Stay | None = None
        error: PyexecError | None = WallUnavailableError(
            "A fault of ours kept the sandbox from being made.", hint="The log of the keeper of sandboxes says more."
        )
        try:
            stay, error = self._make(), None
        except PyexecError as raised:
            error = raised
        except FileNotFoundError:
            error = WallUnavailableError(f"The environment {self._environment} is gone.", hint="Try again.")
        finally:
            self._hand_over(stay, error)

    def _hand_over(self, stay: Stay | None, error: PyexecError | None) -> None:
        with self._lock:
            self._stay, self._error, self.over = stay, error, True
            if not self._given_up:
                self._wake()
                return
        if stay is not None:
            stay.close()
