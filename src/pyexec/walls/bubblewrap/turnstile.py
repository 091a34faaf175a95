"""Who gets the next sandbox, where there is not room for all: one owner after the other, each in their own order.

Whoever finds room while nobody waits goes through. Else they stand in line, and of those who wait one at a time tries:
the first of the owner whose latest sandbox was made the longest time ago, or who has had none. So an owner with a
hundred in line delays one with a single execution by one sandbox, and nobody waits for ever.
"""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TypeVar

from pyexec.domain.errors import SandboxesFullError

Made = TypeVar("Made")

LOOK_SECONDS = 1.0
"""How often one looks again who waits for room: what was in use a moment ago may be idle for long enough by now."""

OWNERS_REMEMBERED = 10_000


class Ticket:
    """One who may have to wait. Belongs to one thread; `give_up` may be called from any."""

    def __init__(self, owner: str = "") -> None:
        self.owner = owner
        self.called = threading.Event()
        self.given_up = False

    def give_up(self) -> None:
        """Have it stand in line no longer."""
        self.given_up = True
        self.called.set()


class Admission:
    """One sandbox, from the attempt to make it until it is gone."""

    def __init__(self, turnstile: "Turnstile", ticket: Ticket) -> None:
        self._turnstile = turnstile
        self._ticket = ticket
        self._gone = threading.Lock()

    def had(self) -> None:
        """Note that there is room for it, so that the next may try while it is made."""
        self._turnstile.step(self._ticket)

    def gone(self) -> None:
        """Note that it takes no room any more; once is enough."""
        if self._gone.acquire(blocking=False):
            self._turnstile.leave()


class Turnstile:
    """Lets those through who want a sandbox. May be used from several threads.

    Args:
        most: How many may stand in line.
        patience: How long one stands in line at most, in seconds.
    """

    def __init__(self, most: int, patience: float) -> None:
        self._most = most
        self._patience = patience
        self._makers: tuple[Callable[[], bool], ...] = ()
        self._lock = threading.Lock()
        self._lines: dict[str, deque[Ticket]] = {}
        self._waiting = 0
        # Numbers of the latest sandbox of each owner.
        self._served: OrderedDict[str, int] = OrderedDict()
        self._number = 0
        self._trying: Ticket | None = None
        # There was no room, and nobody has left since: one looks again now and then.
        self._blocked = False
        self._looker: Ticket | None = None
        self._inside = 0
        self._left = 0

    def make_room_by(self, *makers: Callable[[], bool]) -> None:
        """Have these asked, one after the other, when there is no room: each tells whether it has made some."""
        self._makers = makers

    @property
    def crowded(self) -> bool:
        """Whether somebody stands in line."""
        return self._waiting > 0

    def before(self, ticket: Ticket) -> int | None:
        """Return about how many get a sandbox before this one does; None for one that does not stand in line."""
        with self._lock:
            line = self._lines.get(ticket.owner, ())
            if ticket not in line:
                return None
            number, ahead = line.index(ticket), True
            before = number
            for owner in sorted(self._lines, key=self._rank):  # Those of one rank stay in the order in which they came.
                ahead = ahead and owner != ticket.owner
                if owner != ticket.owner:
                    before += min(len(self._lines[owner]), number + ahead)
            return before

    def admit(self, ticket: Ticket, make: Callable[[Admission], Made]) -> Made:
        """Return what is made, once there is room. Blocks.

        `make` is tried until it does not raise `SandboxesFullError`. It calls `had` when that is certain, and sees that
        `gone` is called in the end.

        Raises:
            SandboxesFullError: Too many stand in line, or it has stood there for too long, or nobody could make room.
            PyexecError: It cannot be made; see `make`.
        """
        why: SandboxesFullError | None = None
        if not self.crowded:
            before = self._left
            try:
                return self._attempt(ticket, make)
            except SandboxesFullError as error:
                why = error
                if self._is_hopeless(before):
                    raise
        self._join(ticket, why)
        try:
            return self._wait(ticket, make)
        finally:
            self._leave_line(ticket)

    def admit_at_once(self, ticket: Ticket, make: Callable[[Admission], Made | None]) -> Made | None:
        """Return what is made, if nobody stands in line, and there is one; see `admit`."""
        if self.crowded:
            return None
        admission = Admission(self, ticket)
        with self._lock:
            self._inside += 1
        made: Made | None = None
        try:
            made = make(admission)
        finally:
            if made is None:
                with self._lock:
                    self._inside -= 1
        return made

    def step(self, ticket: Ticket) -> None:
        """Note that there is room for one; the next may try."""
        with self._lock:
            self._number += 1
            self._served[ticket.owner] = self._number
            self._served.move_to_end(ticket.owner)
            if len(self._served) > OWNERS_REMEMBERED:
                self._served.popitem(last=False)
            self._take_out(ticket)
            self._call_next()

    def leave(self) -> None:
        """Note that there is room again."""
        with self._lock:
            self._inside -= 1
            self._left += 1
            self._blocked = False
            self._call_next()

    # -- trying ----------------------------------------------------------------------------------------------------

    def _attempt(self, ticket: Ticket, make: Callable[[Admission], Made]) -> Made:
        admission = Admission(self, ticket)
        with self._lock:
            self._inside += 1
        while True:
            try:
                return make(admission)
            except SandboxesFullError:
                if not any(maker() for maker in self._makers):
                    with self._lock:
                        self._inside -= 1  # That has made no room for others.
                    raise
            except BaseException:
                admission.gone()
                raise

    def _is_hopeless(self, before: int) -> bool:
        """Tell whether there is nobody whose leaving would make room, nor has been since so many had left."""
        with self._lock:
            return self._inside == 0 and self._left == before

    # -- the line --------------------------------------------------------------------------------------------------

    def _join(self, ticket: Ticket, why: SandboxesFullError | None) -> None:
        with self._lock:
            if self._waiting >= self._most:
                raise SandboxesFullError(
                    f"There is no room for one more sandbox, and {self._waiting} executions wait for one already; at "
                    f"most {self._most} may.",
                    hint="Try again a little later.",
                ) from why
            self._put_in(ticket)
            self._call_next()

    def _leave_line(self, ticket: Ticket) -> None:
        with self._lock:
            self._take_out(ticket)
            if self._looker is ticket:
                self._looker, self._blocked = None, False
            self._call_next()

    def _wait(self, ticket: Ticket, make: Callable[[Admission], Made]) -> Made:
        until = time.monotonic() + self._patience
        while True:
            left = max(0.0, until - time.monotonic())
            ticket.called.wait(min(left, LOOK_SECONDS) if self._looker is ticket else left)
            with self._lock:
                if self._looker is ticket:
                    self._looker, self._blocked = None, False
                    self._call_next()
                mine, before = self._trying is ticket, self._left
                ticket.called.clear()  # That it may be this one's turn has been heard now.
            if ticket.given_up:
                raise SandboxesFullError("Nobody waits for it any more.")
            if mine:
                try:
                    return self._attempt(ticket, make)
                except SandboxesFullError:
                    if self._is_hopeless(before):
                        raise
                    self._stand_back(ticket, before)
            if time.monotonic() >= until:
                raise SandboxesFullError(
                    f"It has waited for a sandbox for {self._patience:g} s, and none has become free.",
                    hint="Try again later; list_running_jobs and list_sessions show what could be ended.",
                )

    def _stand_back(self, ticket: Ticket, before: int) -> None:
        """Note that there was no room for one, unless somebody has left since."""
        with self._lock:
            if ticket not in self._lines.get(ticket.owner, ()):
                self._put_in(ticket, first=True)
            if self._trying is ticket:
                self._trying = None
            if self._left == before:
                self._blocked, self._looker = True, ticket
            self._call_next()

    def _put_in(self, ticket: Ticket, *, first: bool = False) -> None:
        line = self._lines.setdefault(ticket.owner, deque())
        if first:
            line.appendleft(ticket)
        else:
            line.append(ticket)
        self._waiting += 1

    def _take_out(self, ticket: Ticket) -> None:
        if self._trying is ticket:
            self._trying = None
        line = self._lines.get(ticket.owner, deque())
        if ticket in line:
            line.remove(ticket)
            self._waiting -= 1
            if not line:
                del self._lines[ticket.owner]

    def _call_next(self) -> None:
        if self._trying is None and not self._blocked and self._lines:
            self._trying = self._lines[min(self._lines, key=self._rank)][0]
            self._trying.called.set()

    def _rank(self, owner: str) -> int:
        return self._served.get(owner, 0)
