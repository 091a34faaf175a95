"""Turns that nobody has to wait for: the guest is asked first, and what is to be noted down is while it works."""

import fcntl
import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyexec.sandbox.claims import LOCK
from pyexec.sandbox.forks import Spent
from pyexec.sandbox.guarding import LastPlace, hold_place, turn_request
from pyexec.walls.bubblewrap.folders import shared
from pyexec.walls.bubblewrap.stays import House, Stay
from pyexec.walls.bubblewrap.turnstile import Ticket

UNNOTED = "an execution in it could not be noted down"


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A turn that a guest has been asked for.

    Attributes:
        ticket: Whose it is.
        stay: Where it runs.
        request: What has been asked for.
        late: What was said there since the turn before.
        before: What had been used there by then.
    """

    ticket: Ticket
    stay: Stay
    request: dict[str, Any]
    late: list[dict[str, Any]]
    before: Spent | None

    def give_up(self, house: House, reason: str | None = UNNOTED) -> None:
        """End it; None: for the reason that its sandbox has ended for already."""
        house.weights.end(self.ticket.owner, self.stay.box)
        self.stay.leave(alive=False, reason=reason)
        self.stay.close()


def environment_of(orders: Mapping[str, Any]) -> Path:
    """Return the environment that an execution runs on."""
    return Path(orders["argv"][orders["python_at"]]).parent.parent


def begin(orders: dict[str, Any], house: House) -> Begun | None:
    """Ask a guest for a turn; None where it would have to wait.

    While the guest works its execution is noted down as its server wants it: `orders` gets the places in line that it
    has taken, and its lock, which whoever has called this closes.

    Raises:
        OSError: It cannot be noted down; what has begun is ended.
    """
    with ExitStack() as holding:
        places: list[LastPlace] = []
        for folder, _entry, slots in orders["lines"]:
            place = hold_place(folder, slots)
            if place is None:
                return None
            places.append(holding.enter_context(closing(place)))
        begun = _ask(orders, house)
        if begun is None:
            return None
        try:
            _note_down(orders, places)
        except BaseException:
            begun.give_up(house)
            raise
    return begun


def _ask(orders: dict[str, Any], house: House) -> Begun | None:
    ticket, environment = Ticket(str(orders.get("owner") or "")), environment_of(orders)
    if orders.get("usual"):
        house.keep(environment)
    session, folders = orders.get("session"), shared(orders.get("folders") or ())
    stay = house.stay_at_once(ticket, environment, session, folders)
    if stay is None:
        return None
    try:
        before, late = stay.box.spent(), stay.late()
        request = turn_request({**orders["guest"], **stay.request})
        begun = Begun(ticket=ticket, stay=stay, request=request, late=late, before=before)
        house.weights.begin(ticket.owner, stay.box)
    except BaseException:
        stay.leave(alive=False, reason="it could not be asked")
        stay.close()
        raise
    stay.connection.send(request, large=True)
    if not stay.connection.is_open:  # Its guest has just ended.
        begun.give_up(house, None)
        return None
    return begun


def _note_down(orders: dict[str, Any], places: list[LastPlace]) -> None:
    folder = Path(orders["folder"])
    folder.mkdir(mode=0o700)
    lock = -1
    try:
        path = os.fspath(folder / LOCK)
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name, text in orders["files"]:
            _write(folder / name, text)
        entries = [place.take(path, orders["id"]) for place in places]
    except BaseException:
        if lock >= 0:
            os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)
        raise
    lines = zip(orders["lines"], entries, strict=True)
    orders["lines"] = [(line, entry, slots) for (line, _none, slots), entry in lines]
    orders["lock"] = lock


def _write(path: Path, text: str) -> None:
    try:
        fd = _create(path)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700)
        fd = _create(path)
    with open(fd, "wb") as file:
        file.write(text.encode("utf-8", "surrogatepass"))


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
