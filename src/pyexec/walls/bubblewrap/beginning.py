"""Turns that nobody has to wait for: the guest is asked before anything is noted down."""

import fcntl
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from selectors import PollSelector
from typing import Any

from pyexec.sandbox.claims import LOCK
from pyexec.sandbox.forks import Spent
from pyexec.sandbox.guarding import (
    EventWriter,
    GuestLink,
    LastPlace,
    Loop,
    Orders,
    hold_place,
    leave_place,
    note_running,
    readable_bytes,
    turn_request,
)
from pyexec.storage import artifacts
from pyexec.walls.bubblewrap.endings import started_in
from pyexec.walls.bubblewrap.folders import shared
from pyexec.walls.bubblewrap.stays import House, Stay
from pyexec.walls.bubblewrap.turnstile import Ticket

UNNOTED = "an execution in it could not be noted down"
FILES_SECONDS = 5.0
"""How long a turn waits for what its server wants to have in its folder, which it says at once unless it is stopped."""


class UnnotedError(Exception):
    """What has begun could not be noted down, and has been ended; the message says why."""


@dataclass(slots=True, kw_only=True)
class Begun:
    """A turn that a guest has been asked for, all of which is in memory yet.

    Attributes:
        orders: What the server has ordered, with the places in line that are taken.
        ticket: Whose it is.
        stay: Where it runs.
        loop: Where the guest is listened to.
        link: What it says.
        events: What has happened.
        started: What is noted of the beginning.
        before: What had been used there by then.
        last_place: The end of its session's line. It is held, and nobody can come in between, until the turn is over
            or goes on, and then it stands there.
        left: Whether it has been let go of, or somebody else does that.
    """

    orders: dict[str, Any]
    ticket: Ticket
    stay: Stay
    loop: Loop
    link: GuestLink
    events: EventWriter
    started: dict[str, Any]
    before: Spent | None
    last_place: LastPlace | None = None
    left: bool = False

    @property
    def folder(self) -> Path:
        """The folder of its execution, which is not made."""
        return Path(self.orders["folder"])

    def leave_lines(self) -> None:
        """Give up its places in line."""
        for folder, entry, _slots in self.orders["lines"]:
            if entry is not None:
                leave_place(folder, entry)
        self._let_go_of_place()

    def stand_in_line(self, lock: Path) -> None:
        """Stand where the place is only held, by the lock of this process.

        Raises:
            OSError: It cannot.
        """
        if self.last_place is not None:
            folder, _none, slots = self.orders["lines"][0]
            self.orders["lines"][0] = (folder, self.last_place.take(os.fspath(lock), self.orders["id"]), slots)
            self._let_go_of_place()

    def hear_files(self, said: Orders) -> bool:
        """Hear what is to be in its folder: its code, and what its server says besides; tell whether that is there.

        One that is killed just now says nothing.
        """
        more: dict[str, Any] | None = None
        try:
            more = said.next(FILES_SECONDS)
        except TimeoutError:
            more = {}
        except OSError:
            pass
        self.orders["files"] = [
            (self.orders["code"], self.orders["guest"]["code"] or ""),
            *(more or {}).get("files", ()),
        ]
        return more is not None

    def _let_go_of_place(self) -> None:
        if self.last_place is not None:
            self.last_place.close()
            self.last_place = None

    def give_up(self, house: House) -> None:
        """End it, as far as it is not over, because it cannot be noted down, or something else is wrong."""
        with ExitStack() as steps:  # Each is done, whichever fails.
            steps.callback(self.leave_lines)
            steps.callback(self.loop.close)
            steps.callback(self.stay.close)
            steps.callback(self.leave, house, alive=False, reason=UNNOTED)
            if not self.left:
                steps.callback(self.link.close)

    def leave(self, house: House, *, alive: bool, reason: str | None) -> str | None:
        """Let go of where it runs; see `Stay.leave`. Does so once."""
        if self.left:
            return None
        self.left = True
        house.weights.end(self.ticket.owner, self.stay.box)
        return self.stay.leave(alive=alive, reason=reason)


def environment_of(orders: Mapping[str, Any]) -> Path:
    """Return the environment that an execution runs on."""
    return _environment_with(orders["argv"][orders["python_at"]])


@lru_cache(maxsize=100)
def _environment_with(python: str) -> Path:
    return Path(python).parent.parent


def begin(orders: dict[str, Any], house: House, lock: Path) -> Begun | None:
    """Ask a guest for a turn; None where it would have to wait.

    In its lines it stands by this lock, which says that this process lives: it has none of its own yet. In that of its
    session, which nobody else can have just now, it stands when it goes on.

    Raises:
        UnnotedError: It cannot stand there.
    """
    disk = os.statvfs(os.path.dirname(orders["folder"]))
    if disk.f_bavail * disk.f_frsize < orders["room"]:
        return None  # Its server says it in so many words.
    places: list[LastPlace] = []
    try:
        for folder, _entry, slots in orders["lines"]:
            place = hold_place(folder, slots)
            if place is None:
                return None
            places.append(place)
        begun = _ask(orders, house)
        if begun is not None:
            if orders.get("session"):
                begun.last_place = places.pop(0)
            _take(places, begun, house, lock)
        return begun
    finally:
        for place in places:
            place.close()


def _take(places: Sequence[LastPlace], begun: Begun, house: House, lock: Path) -> None:
    lines: list[tuple[str, str | None, int]] = begun.orders["lines"]
    first = len(lines) - len(places)
    try:
        for number, place in enumerate(places, first):
            folder, _none, slots = lines[number]
            lines[number] = (folder, place.take(os.fspath(lock), begun.orders["id"]), slots)
    except BaseException as error:
        begun.give_up(house)
        if isinstance(error, OSError):
            raise UnnotedError(error.strerror) from error
        raise


def _ask(orders: dict[str, Any], house: House) -> Begun | None:
    ticket, environment = Ticket(str(orders.get("owner") or "")), environment_of(orders)
    if orders.get("usual"):
        house.keep(environment)
    session, folders = orders.get("session"), shared(orders.get("folders") or ())
    stay = house.stay_at_once(ticket, environment, session, folders)
    if stay is None:
        return None
    try:
        late = stay.late()
        request = turn_request({**orders["guest"], **stay.request})
        house.weights.begin(ticket.owner, stay.box)
    except BaseException:
        stay.leave(alive=False, reason="it could not be asked")
        stay.close()
        raise
    stay.connection.send(request, large=True)
    try:
        if not stay.connection.is_open:  # Its guest has just ended.
            _leave(stay, ticket, house, None)
            return None
        # All else is done while the guest works. What it has used before is read while it wakes up.
        before = stay.box.spent()
        begun = _begun(orders, ticket, stay, request, before)
    except BaseException:
        _leave(stay, ticket, house, UNNOTED)
        raise
    try:
        stay.began(begun.link.turn)
        begun.link.note_late(late)
    except BaseException:
        begun.give_up(house)
        raise
    return begun


def _leave(stay: Stay, ticket: Ticket, house: House, reason: str | None) -> None:
    house.weights.end(ticket.owner, stay.box)
    stay.leave(alive=False, reason=reason)
    stay.close()


def _begun(orders: dict[str, Any], ticket: Ticket, stay: Stay, request: dict[str, Any], before: Spent | None) -> Begun:
    now = time.time()
    started, loop, events = {**started_in(stay.box), "started_at": now}, Loop(PollSelector()), EventWriter(None)
    note_running(events, now, started)
    link = GuestLink(
        loop,
        None,
        request,
        lambda: [readable_bytes(fd) for fd in stay.box.sandbox.output],
        lambda kind: events.note("display", time.time(), display=kind),
        connection=stay.connection,
        earlier=stay.earlier,
        files=os.path.join(orders["folder"], artifacts.FOLDER),
        sent=True,
    )
    return Begun(
        orders={**orders, "lines": [tuple(line) for line in orders["lines"]]},
        ticket=ticket,
        stay=stay,
        loop=loop,
        link=link,
        events=events,
        started=started,
        before=before,
    )


def note_down(begun: Begun, house: House, life: Path) -> int:
    """Make the folder of a turn that goes on, with what its server wants in there; return its lock, which is held.

    In line it stands by the lock of this process, `life`.

    Raises:
        UnnotedError: It cannot be made.
    """
    folder, lock = begun.folder, -1
    try:
        begun.stand_in_line(life)
        folder.mkdir(mode=0o700)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name, text in begun.orders["files"]:
            _write(folder / name, text)
    except BaseException as error:
        if lock >= 0:
            os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)
        begun.give_up(house)
        if isinstance(error, OSError):
            raise UnnotedError(error.strerror) from error
        raise
    return lock


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(text.encode("utf-8", "surrogatepass"))
